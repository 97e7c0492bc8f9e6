//! An operator, what its users do, and what must hold, as functions.

use std::fmt::Display;

use http::Method;
use koord_resource::document::Declared;
use koord_runtime::{Core, random::Random};
use serde_json::json;

use crate::{Disturbance, Failed, Played, Scenario, Simulation, Stage, people::define};

const NAMESPACES: &str = "/api/v1/namespaces";

type Wire = Box<dyn Fn(&mut Core) -> Result<(), String> + Sync>;
type Act = Box<dyn Fn(&mut Stage) + Sync>;
type Holds = Box<dyn Fn(&mut Stage) -> Result<(), String> + Sync>;
type Users = Box<dyn Fn(&mut Stage, &Random) -> Disturbance + Sync>;

/// Something that must hold of a cluster.
struct Law {
    name: &'static str,
    holds: Holds,
}

/// An operator on a cluster with the namespace `default`: what its users do, what must hold at any time, and what must hold in the end.
///
/// Three things are checked without being asked for: two decisions on the same caches are equal, the caches of a program that has
/// lived through everything are those of one that has just started, and nothing is written for half an hour when all is right.
pub struct Trial {
    wire: Wire,
    kinds: Vec<&'static [Declared]>,
    prepare: Vec<Act>,
    users: Option<Users>,
    conclude: Vec<Act>,
    always: Vec<Law>,
    eventually: Vec<Law>,
}

impl Trial {
    /// The operator that this function adds its controllers to a core for. It is called for each life of the program: what a
    /// controller remembers has to be made in it.
    pub fn of<E: Display>(wire: impl Fn(&mut Core) -> Result<(), E> + Sync + 'static) -> Self {
        Self {
            wire: Box::new(move |core: &mut Core| wire(core).map_err(|error| error.to_string())),
            kinds: Vec::new(),
            prepare: Vec::new(),
            users: None,
            conclude: Vec::new(),
            always: Vec::new(),
            eventually: Vec::new(),
        }
    }

    /// Installs the definitions of these kinds, each with its versions.
    pub fn kinds(mut self, kinds: impl IntoIterator<Item = &'static [Declared]>) -> Self {
        self.kinds.extend(kinds);
        self
    }

    /// What is there before anybody acts.
    pub fn given(mut self, prepare: impl Fn(&mut Stage) + Sync + 'static) -> Self {
        self.prepare.push(Box::new(prepare));
        self
    }

    /// One thing that a user does, drawn from the random source, and what it was in words. A few names, each used again, find more than
    /// many. A [`Disturbance`] also says which fault it is.
    pub fn users<D: Into<Disturbance>>(mut self, act: impl Fn(&mut Stage, &Random) -> D + Sync + 'static) -> Self {
        self.users =
            Some(Box::new(move |stage: &mut Stage, random: &Random| -> Disturbance { act(stage, random).into() }));
        self
    }

    /// The last thing that users do, after which the right state follows from the cluster alone: they take away finalizers, and repair
    /// what they have made unreadable.
    pub fn conclude(mut self, act: impl Fn(&mut Stage) + Sync + 'static) -> Self {
        self.conclude.push(Box::new(act));
        self
    }

    /// What must hold after every step of the operator in which it may have written.
    pub fn always(
        mut self,
        name: &'static str,
        holds: impl Fn(&mut Stage) -> Result<(), String> + Sync + 'static,
    ) -> Self {
        self.always.push(Law { name, holds: Box::new(holds) });
        self
    }

    /// What must hold two hours after the last fault, and from then on.
    pub fn eventually(
        mut self,
        name: &'static str,
        holds: impl Fn(&mut Stage) -> Result<(), String> + Sync + 'static,
    ) -> Self {
        self.eventually.push(Law { name, holds: Box::new(holds) });
        self
    }

    /// Plays so many seeds, or the one that the variable `SEED` names; see [`Simulation::play`].
    pub fn play(&self, seeds: u64) -> Result<Played, Failed> {
        Simulation::of(self).play(seeds)
    }
}

impl Scenario for Trial {
    fn prepare(&self, stage: &mut Stage) {
        stage.person(&Method::POST, NAMESPACES, &json!({"metadata": {"name": "default"}}));
        define(stage, &self.kinds);
        self.prepare.iter().for_each(|prepare| prepare(stage));
    }

    fn wire(&self, core: &mut Core) -> Result<(), String> {
        (self.wire)(core)
    }

    fn disturb(&self, stage: &mut Stage, random: &Random) -> Disturbance {
        self.users.as_ref().map_or_else(|| "nobody: call Trial::users".into(), |act| act(stage, random))
    }

    fn conclude(&self, stage: &mut Stage) {
        self.conclude.iter().for_each(|act| act(stage));
    }

    fn always(&self, stage: &mut Stage) -> Result<(), String> {
        all_hold(&self.always, stage)
    }

    fn check(&self, stage: &mut Stage) -> Result<(), String> {
        all_hold(&self.eventually, stage)
    }
}

fn all_hold(laws: &[Law], stage: &mut Stage) -> Result<(), String> {
    laws.iter().try_for_each(|law| (law.holds)(stage).map_err(|why| format!("{}: {why}", law.name)))
}
