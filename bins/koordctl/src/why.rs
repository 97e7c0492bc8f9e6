//! `koordctl why`: what koord-scheduler says about a pod and every node, what it would do now, and what would change that.
//!
//! The answer comes from the scheduler's own engine, filled with the objects of a cluster or of files.

mod answer;
mod gang;
mod history;
mod new_pod;
mod owners;

use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use koord_manager_assembly::GPU_SHARES;
use koord_program::{gates::Gates, plan::Source};
use koord_runtime::{
    clock::{Moment, SystemClock},
    uid::Uid,
};
use koord_scheduler::Options;
use koord_scheduler_assembly::{Configuration, snapshot};
use koord_scheduler_engine::{Engine, Why};
use koord_scheduler_framework::pod::Pod;
use koord_scheduler_what_if::{Objects, Unblocked, unblock};
use koord_types::resource_names::{GPU_CORE, GPU_MEMORY_RATIO, GPU_SHARED};
use serde_json::{Value, json};

pub(crate) use self::new_pod::prioritize;
use crate::{
    Answer,
    cli::{OutputFormat, SchedulerArgs, WhyArgs},
    connect, files,
    names::{few, question},
    screen::Screen,
};

/// What is asked about.
#[derive(Clone, Copy)]
enum Subject<'a> {
    Pod(&'a str),
    NewPod,
    Gang(&'a str),
    Reservation(&'a str),
}

impl<'a> Subject<'a> {
    fn of(args: &'a WhyArgs) -> Result<Self> {
        let words: Vec<&str> = args.what.iter().map(String::as_str).collect();
        Ok(match (&*words, &args.file) {
            ([], Some(_)) => Self::NewPod,
            (_, Some(_)) => bail!("--file names the pod already; leave {} out", words.join(" ")),
            ([], None) => bail!("name a pod, or a file with one: koordctl why POD, koordctl why --file pod.yaml"),
            ([pod] | ["pod", pod], None) => Self::Pod(pod),
            (["gang", gang], None) => Self::Gang(gang),
            (["reservation", name], None) => Self::Reservation(name),
            ([kind, ..], None) => {
                let known = question(kind, ["pod", "gang", "reservation"]);
                bail!(
                    "{kind:?} cannot be asked about; {}",
                    known.unwrap_or_else(|| "pod, gang, reservation".to_owned())
                )
            }
        })
    }
}

/// Says why.
pub async fn run(args: &WhyArgs, screen: Screen) -> Result<Answer> {
    let named = in_its_namespace(args)?;
    let args = named.as_ref().unwrap_or(args);
    let asked = Subject::of(args)?;
    if args.history {
        return match asked {
            Subject::Pod(pod) => history::tell(pod, args, screen).await,
            Subject::Gang(gang) => history::tell_gang(gang, args, screen).await,
            Subject::NewPod | Subject::Reservation(_) => {
                bail!(
                    "--history is about a pod or a gang: koordctl why POD --history, koordctl why gang GANG --history"
                )
            }
        };
    }
    let (configuration, gates) = configuration(&args.scheduler)?;
    let (source, time, mut objects) = if args.filename.is_empty() {
        let server = connect::reach(&args.answer.cluster.flags()).await?;
        (Source::Cluster(server.client.clone()), server.time, Objects::of_cluster(server.client))
    } else {
        let mut objects = files::objects(&args.filename)?;
        objects.iter_mut().for_each(identify);
        let known = Objects::of_files(&objects);
        (Source::Files(objects), None, known)
    };
    let now = args.at.or(time).unwrap_or_else(|| SystemClock::shared().now());
    objects.transformers = koord_scheduler_assembly::transformers(&gates);
    let mut engine = snapshot(&configuration, &gates, source, now).await?;
    let uid = match asked {
        Subject::Gang(gang) => return gang::explain(&engine, &mut objects, gang, args, screen).await,
        Subject::Pod(name) => pod(&engine, name, args)?,
        Subject::Reservation(name) => match reservation(&engine, name) {
            Ok(uid) => uid,
            Err(unknown) => {
                let usage = owners::usage(&engine, name).ok_or(unknown)?;
                return without_place(&usage, args, screen);
            }
        },
        Subject::NewPod => new_pod::add(&mut engine, &mut objects, args).await?,
    };
    let known: Vec<String> = engine.cluster().rows().map(|(_, node)| node.name.to_string()).collect();
    if let Some(node) = args.node.as_ref().filter(|node| !known.contains(node)) {
        let names = known.iter().map(String::as_str);
        bail!("there is no node {node}; {}", question(node, names).unwrap_or_else(|| few(&known)));
    }
    let why = engine.copy().why(&uid, Moment::default()).ok_or_else(|| anyhow!("the pod is gone"))?;
    let unblocked = if answer::is_placed(&why) || args.node.is_some() {
        Unblocked::default()
    } else {
        unblock(&engine, &mut objects, &why).await?
    };
    let usage = match asked {
        Subject::Reservation(name) if args.node.is_none() => owners::usage(&engine, name),
        _ => None,
    };
    let text = match args.answer.output {
        OutputFormat::Table => {
            if let Some(node) = &args.node {
                answer::on_node(&why, node, screen)
            } else {
                let users = usage.map(|usage| format!("\n{}", usage.to_text(screen))).unwrap_or_default();
                answer::everywhere(&why, &unblocked, screen)
                    + &served(&engine, &why)
                    + &without_shares(&engine, &why)
                    + &users
            }
        }
        format => {
            let mut document = answer::document(&why, &unblocked, args.node.as_deref());
            if let Some(usage) = usage {
                document["reservation"] = usage.document();
            }
            format.document(&document)?
        }
    };
    Ok(Answer { text, code: u8::from(!answer::is_placed(&why)) })
}

/// The arguments where a pod stands as NAMESPACE/NAME, with its namespace and its name apart; none where it does not.
fn in_its_namespace(args: &WhyArgs) -> Result<Option<WhyArgs>> {
    let ([pod] | [_, pod]) = &*args.what else { return Ok(None) };
    let Some((namespace, name)) = pod.split_once('/') else { return Ok(None) };
    if args.what.len() == 2 && args.what[0] != "pod" {
        return Ok(None);
    }
    if args.namespace.as_deref().is_some_and(|other| other != namespace) {
        bail!("{pod} and -n {} name two namespaces; leave one of them out", args.namespace());
    }
    let (what, namespace) = (vec![name.to_owned()], Some(namespace.to_owned()));
    Ok(Some(WhyArgs { what, namespace, ..args.clone() }))
}

/// What is said of a Reservation that is over, or of which no pod can be made.
fn without_place(usage: &owners::Usage<'_>, args: &WhyArgs, screen: Screen) -> Result<Answer> {
    let text = match args.answer.output {
        OutputFormat::Table => format!("{}\n\n{}", usage.summary(), usage.to_text(screen)),
        format => format.document(&json!({"summary": usage.summary(), "reservation": usage.document()}))?,
    };
    Ok(Answer { text, code: 1 })
}

/// Which schedulers the configuration has, where the pod's is none of them, and what helps.
fn served(engine: &Engine, why: &Why) -> String {
    let Err(reason) = &why.decision else { return String::new() };
    let schedulers: Vec<&str> = engine.profiles().map(|profile| &*profile.scheduler).collect();
    let meant = question(&why.pod.template.scheduler, schedulers.iter().copied());
    let meant = meant.map(|meant| format!("; {meant}")).unwrap_or_default();
    format!("the configuration has profiles for {}{meant}\n{}\n", schedulers.join(", "), reason.code.remedy())
}

/// The feature gate without which no node offers what koord-manager adds to every pod that requests a part of a GPU, where that stops the pod.
fn without_shares(engine: &Engine, why: &Why) -> String {
    let offers = |name: &str| engine.cluster().rows().any(|(_, node)| node.allocatable.amount(name).signum() > 0);
    let is_requested = why.pod.template.requests.amount(GPU_SHARED).signum() > 0;
    if answer::is_placed(why) || !is_requested || offers(GPU_SHARED) || !(offers(GPU_CORE) || offers(GPU_MEMORY_RATIO))
    {
        return String::new();
    }
    format!(
        "\nno node offers {GPU_SHARED}: koord-manager adds it to pods that request GPUs, and writes it to nodes with the feature gate {GPU_SHARES} only\n"
    )
}

/// Objects of files may lack a uid; those of pods are told apart by their names then.
pub(crate) fn identify(object: &mut Value) {
    if object["kind"] == "Pod" && object["metadata"].is_object() && object["metadata"]["uid"].is_null() {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or("default");
        object["metadata"]["uid"] = format!("{}/{}", text("namespace"), text("name")).into();
    }
}

/// The scheduler's configuration and feature gates.
pub(crate) fn configuration(SchedulerArgs { config, feature_gates }: &SchedulerArgs) -> Result<(Configuration, Gates)> {
    let mut line = vec!["koord-scheduler".to_owned(), format!("--feature-gates={feature_gates}")];
    line.extend(config.iter().map(|file| format!("--config={}", file.display())));
    let checked = Options::from_arguments(line).and_then(Options::check).map_err(|error| {
        let text = error.to_string();
        anyhow!("{}", text.trim().trim_start_matches("error: "))
    })?;
    let configuration = match config {
        Some(_) => koord_scheduler::configuration(&checked.options)?,
        None => Configuration::shipped_for_all_pods()?,
    };
    Ok((configuration, checked.gates))
}

/// All pods, and what stands for other objects.
fn pods(engine: &Engine) -> impl Iterator<Item = &Arc<Pod>> {
    let cluster = engine.cluster();
    cluster.pods().map(|placed| &placed.pod).chain(cluster.pending())
}

/// The uid of a pod.
fn pod(engine: &Engine, name: &str, args: &WhyArgs) -> Result<Uid> {
    let real = || pods(engine).filter(|pod| !pod.is_reservation());
    let of_namespace = || real().filter(|pod| pod.key.namespace() == args.namespace());
    if let Some(pod) = of_namespace().find(|pod| pod.key.name() == name) {
        return Ok(pod.uid.clone());
    }
    let remedy = match real().find(|pod| pod.key.name() == name) {
        Some(pod) => format!("there is one in namespace {}: name it with -n", pod.key.namespace()),
        None => question(name, of_namespace().map(|pod| pod.key.name()))
            .unwrap_or_else(|| "name one that has not ended, and its namespace with -n".to_owned()),
    };
    bail!("there is no pod {name} in namespace {}; {remedy}", args.namespace())
}

/// The uid of the reserve pod of a reservation.
fn reservation(engine: &Engine, name: &str) -> Result<Uid> {
    let reserve_pods = || pods(engine).filter_map(|pod| Some((pod, pod.reservation.as_ref()?)));
    if let Some((pod, _)) = reserve_pods().find(|(_, object)| object.key.name() == name) {
        return Ok(pod.uid.clone());
    }
    let remedy = question(name, reserve_pods().map(|(_, object)| object.key.name()))
        .unwrap_or_else(|| "name one that is neither over nor left to another scheduler".to_owned());
    bail!("there is no reservation {name} to be placed; {remedy}")
}
