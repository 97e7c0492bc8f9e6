//! Two managers with their webhooks: what people write goes through the paths that the server's webhook configurations
//! name, to the real service, while certificates are replaced, tampered with and lost, replicas die, and their watches
//! break. Everything runs in one thread on paused time; only the sockets are missing.

mod people;
mod route;

use std::{sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use envtest::{admission::Webhooks, shell::Parts};
use jiff::ToSpan;
use koord_resource::{
    admission::WebhookKind,
    document::{WebhookService, webhook_configuration},
};
use koord_runtime::{
    Core,
    clock::{ManualClock, ScaledClock},
    random::Random,
};
use koord_simulator::{Scenario, parts::start};
use koord_webhook_server::{
    CertWriter, Defaults, Environment, Served, Service, ServiceBuilder, WebhookController, certificates,
};
use serde_json::{Value, json};
use tokio::runtime;

use self::{
    people::{People, Written},
    route::{Reached, Route},
};
use crate::{
    Failure, Options, Report, Stage,
    network::Disruptions,
    replica::{Replica, Replicas},
    whole_manager::WholeManager,
};

/// How long things may take to become right after the last fault.
const RECOVERY: Duration = Duration::from_mins(50);
/// Programs of which one leads; webhooks are served by both.
const REPLICAS: usize = 2;
/// A certificate is valid for ten years, and replaced half a year before its end.
const NEARLY_TEN_YEARS: i64 = 24 * (10 * 365 - 100);

const SERVICE: &str = "koordinator-webhook-service";
const SECRETS: &str = "/api/v1/namespaces/koordinator-system/secrets";
const SECRET: &str = "koordinator-webhook-certs";
const CONFIGURATIONS: [(WebhookKind, &str, &str); 2] = [
    (
        WebhookKind::Mutating,
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
        "koordinator-mutating-webhook-configuration",
    ),
    (
        WebhookKind::Validating,
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        "koordinator-validating-webhook-configuration",
    ),
];
/// Every path is served.
const GATES: [&str; 8] = [
    "PodMutatingWebhook",
    "PodValidatingWebhook",
    "ElasticMutatingWebhook",
    "ElasticValidatingWebhook",
    "NodeMutatingWebhook",
    "NodeValidatingWebhook",
    "ConfigMapValidatingWebhook",
    "ReservationMutatingWebhook",
];

/// The scenario of two managers with webhooks.
pub struct Admission {
    /// Without certificates, and with some that near their end.
    stages: [Stage; 2],
}

struct Play {
    stage: Stage,
    random: Random,
    disruptions: Arc<Disruptions>,
    route: Route,
    replicas: Replicas,
    people: People,
}

impl Admission {
    /// Sets the stage.
    pub fn prepare() -> Result<Self, String> {
        let stage = || {
            let mut stage = Stage::new(0, ManualClock::new(start()));
            WholeManager::default().prepare(&mut stage);
            let service = WebhookService { namespace: "koordinator-system", name: SERVICE, ca_bundle: "Cg==" };
            for (kind, path, name) in CONFIGURATIONS {
                let configuration = webhook_configuration(kind, name, koord_webhook_handlers::HANDLERS, &service);
                stage.person(&http::Method::POST, path, &configuration);
            }
            stage
        };
        let mut old = stage();
        let made = start() - NEARLY_TEN_YEARS.hours();
        let set = certificates::decide(None, &format!("{SERVICE}.koordinator-system.svc"), false, made);
        let set = set.map_err(|error| error.to_string())?.set;
        let data: Value = set.entries().into_iter().map(|(name, bytes)| (name, BASE64.encode(bytes))).collect();
        old.person(&http::Method::POST, SECRETS, &json!({"metadata": {"name": SECRET}, "data": data}));
        Ok(Self { stages: [stage(), old] })
    }

    /// One run.
    pub fn run(&self, seed: u64, options: Options) -> Result<Report, Failure> {
        let failure = |what: String| Failure { seed, what, story: String::new() };
        let runtime = runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.map_err(|error| failure(error.to_string()))?;
        runtime.block_on(async {
            let clock = ScaledClock::shared(start(), 1.0);
            let random = Random::seeded(seed);
            let disruptions = Disruptions::new(Arc::clone(&clock), random.clone(), options);
            let route = Route::new(Arc::clone(&disruptions), Arc::clone(&clock));
            let parts = Parts { admission: Some(Box::new(Webhooks::over(route.clone()))), ..Parts::default() };
            let kind = &self.stages[usize::try_from(seed % 2).unwrap_or_default()];
            let stage = kind.fork_with(seed, Arc::clone(&clock), parts);
            let people = People::new(stage.server().clone(), random.clone(), route.clone(), Arc::clone(&clock));
            let replicas = Replicas::new(&stage, random.clone(), Arc::clone(&disruptions));
            let mut play = Play { stage, random, disruptions, route, replicas, people };
            let ended = play.play_out(options).await;
            let (trace_hash, steps, story, faults) = play.disruptions.story();
            let program_writes = play.disruptions.writes();
            let writes = play.people.writes + program_writes;
            play.route.close_all();
            match ended {
                Ok(()) => Ok(Report {
                    trace_hash,
                    steps,
                    writes,
                    program_writes,
                    promises: play.people.kept,
                    bindings: 0,
                    faults,
                }),
                Err(what) => Err(Failure { seed, what, story }),
            }
        })
    }
}

impl Play {
    async fn play_out(&mut self, options: Options) -> Result<(), String> {
        for _ in 0..REPLICAS {
            self.begin_life()?;
        }
        while self.people.writes + self.disruptions.writes() < options.writes {
            self.trouble().await?;
        }
        self.disruptions.stop_faults();
        self.disruptions.note(format_args!("no more faults"));
        self.people.conclude().await?;
        self.replicas.pass(RECOVERY).await?;
        self.route.forget_distrust();
        self.people.check().await?;
        self.replicas.pass(RECOVERY).await?;
        match self.route.distrusted() {
            0 => {}
            times => return Err(format!("nothing goes wrong any more, and {times} reviews met nobody to trust")),
        }
        self.replicas.silence("after everything was right").await?;
        // A new life knows only what the server says.
        let old = self.replicas.leave();
        self.begin_life()?;
        for replica in &old {
            self.end(replica);
        }
        self.replicas.silence("by a program that had just started, although everything was right").await?;
        old.iter().try_for_each(|replica| self.replicas.compare(replica))
    }

    fn begin_life(&mut self) -> Result<(), String> {
        // Where its certificates are copied to.
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let [mutating, validating] = CONFIGURATIONS.map(|(_, _, name)| name.to_owned());
        let defaults = Defaults {
            secret: SECRET.to_owned(),
            service: SERVICE.to_owned(),
            mutating,
            validating,
            ..Defaults::of("koord-manager", "koordinator-system")
        };
        let environment = Environment {
            cert_dir: Some(folder.path().join("certificates")),
            cert_writer: CertWriter::Secret,
            ..Environment::of(defaults, |_| None).map_err(|error| error.to_string())?
        };
        let (service, controller) = self.replicas.begin(|core, _| {
            WholeManager::default().wire(core)?;
            let service = service(core)?;
            let controller =
                Arc::new(WebhookController::new(environment, Served::by(&service), 9443, Arc::clone(core.clock())));
            controller.watch(core);
            Ok(((service, controller), Vec::new()))
        })?;
        let Some(replica) = self.replicas.newest() else { return Ok(()) };
        let quotas = replica.core().watches().iter().find(|watch| watch.kind.plural == "elasticquotas");
        let quotas = Arc::clone(quotas.ok_or("nobody watches quotas")?);
        let kept = Arc::clone(&controller);
        replica.accompany(|api, stop| async move {
            kept.run(&api, &stop).await;
            drop(folder);
        });
        self.route.open(Reached { number: replica.number, service, controller, quotas });
        Ok(())
    }

    /// A program that ends answers no reviews any more.
    fn end(&self, replica: &Replica) {
        self.route.close(replica.number);
        replica.stop();
    }

    /// A while, something that people do, and what goes wrong with programs and their certificates.
    async fn trouble(&mut self) -> Result<(), String> {
        let longest = if self.chance(30) { Duration::from_mins(20) } else { Duration::from_secs(20) };
        self.replicas.pass(self.disruptions.span(longest)).await?;
        let Written { what, fault } = self.people.act().await?;
        if let Some(fault) = fault {
            self.disruptions.struck(fault);
        }
        self.disruptions.note(format_args!("a person: {what}"));
        if self.chance(3) {
            self.stage.tidy();
        }
        if self.chance(30) {
            let victim = self.replicas.kill_one();
            self.route.close(victim.number);
            self.begin_life()?;
        }
        if self.chance(40) {
            self.disruptions.begin_outage(self.disruptions.span(Duration::from_mins(2)));
        }
        Ok(())
    }

    fn chance(&self, one_in: u64) -> bool {
        self.random.below(one_in) == 0
    }
}

fn service(core: &mut Core) -> Result<Service, String> {
    let counters = koord_webhook_server::Metrics::register(core.metrics());
    let counters = counters.map_err(|error| error.to_string())?;
    let gate = |name: &str| GATES.contains(&name);
    let clock = Arc::clone(core.clock());
    let ctx = Arc::new(koord_webhook_handlers::Ctx::watch(core, gate, koord_webhook_handlers::Settings::default()));
    Ok(koord_webhook_handlers::serve(ServiceBuilder::new(counters, clock), &ctx, gate).build())
}
