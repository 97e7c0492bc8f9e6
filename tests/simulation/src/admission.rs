//! Two managers with their webhooks: what people write goes through the paths that the server's webhook configurations
//! name, to the real service, while certificates are replaced, tampered with and lost, replicas die, and their watches
//! break. Everything runs in one thread on paused time; only the sockets are missing.

mod people;
mod way;

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
    clock::{ManualClock, ScaledClock, SharedClock},
    lease::Candidacy,
    manager::{Manager, RunError, Settings},
    metrics::Metrics,
    random::Random,
    recorder::Recorder,
    reflector::Initial,
};
use koord_webhook::{CertWriter, Environment, Keeper, Served, Service, ServiceBuilder, certificates};
use kube::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{runtime, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use self::{
    people::{People, Written},
    way::{Reached, Way},
};
use crate::{
    Failure, Fault, Options, Report, Scenario, Stage,
    network::{Network, Weather},
    run::start,
    whole_manager::WholeManager,
};

/// How long things may take to become right after the last fault.
const PEACE: Duration = Duration::from_mins(50);
/// How long nothing may be written after that.
const SILENCE: Duration = Duration::from_mins(30);
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

/// See the module.
pub struct Admission {
    /// Without certificates, and with some that near their end.
    stages: [Stage; 2],
}

/// A running program.
struct Replica {
    number: u64,
    core: Arc<Core>,
    stop: CancellationToken,
    running: JoinHandle<Result<(), RunError>>,
    caring: JoinHandle<()>,
    /// Where its certificates are copied to.
    _folder: TempDir,
}

struct Play {
    stage: Stage,
    clock: SharedClock,
    random: Random,
    weather: Arc<Weather>,
    way: Way,
    replicas: Vec<Replica>,
    born: u64,
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
                let configuration = webhook_configuration(kind, name, &koord_webhooks::HANDLERS, &service);
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
            let weather = Weather::new(Arc::clone(&clock), random.clone(), options.faults);
            let way = Way::new(Arc::clone(&weather), Arc::clone(&clock));
            let parts = Parts { admission: Some(Box::new(Webhooks::over(way.clone()))), ..Parts::default() };
            let kind = &self.stages[usize::try_from(seed % 2).unwrap_or_default()];
            let stage = kind.fork_with(seed, Arc::clone(&clock), parts);
            let people = People::new(stage.server().clone(), random.clone());
            let born = 0;
            let mut play = Play { stage, clock, random, weather, way, replicas: Vec::new(), born, people };
            let told = play.tell_all(options).await;
            let (trace_hash, steps, story, faults) = play.weather.story();
            let program_writes = play.weather.writes();
            let writes = play.people.writes + program_writes;
            match told {
                Ok(()) => Ok(Report { trace_hash, steps, writes, program_writes, faults }),
                Err(what) => Err(Failure { seed, what, story }),
            }
        })
    }
}

impl Play {
    async fn tell_all(&mut self, options: Options) -> Result<(), String> {
        for _ in 0..REPLICAS {
            self.begin_life()?;
        }
        while self.people.writes + self.weather.writes() < options.writes {
            self.trouble().await?;
        }
        self.weather.make_peace();
        self.weather.note(format_args!("peace"));
        self.people.conclude().await?;
        self.pass(PEACE).await?;
        self.way.forget_distrust();
        self.people.check().await?;
        self.pass(PEACE).await?;
        match self.way.distrusted() {
            0 => {}
            times => return Err(format!("nothing goes wrong any more, and {times} reviews met nobody to trust")),
        }
        self.silence("after everything was right").await?;
        // A new life knows only what the server says.
        let old: Vec<Replica> = self.replicas.drain(..).collect();
        self.begin_life()?;
        for replica in &old {
            self.end(replica);
        }
        self.silence("by a program that had just started, although everything was right").await?;
        old.iter().try_for_each(|replica| self.compare(replica))
    }

    fn begin_life(&mut self) -> Result<(), String> {
        self.born += 1;
        let number = self.born;
        self.weather.note(format_args!("life {number}"));
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let environment = Environment {
            cert_dir: folder.path().join("certificates"),
            cert_writer: CertWriter::Secret,
            ..Environment::from(|_| None).map_err(|error| error.to_string())?
        };
        let (recorder, told) = Recorder::new(Arc::clone(&self.clock));
        let metrics = Metrics::new().map_err(|error| error.to_string())?;
        let random = Random::seeded(self.random.number());
        let mut core = Core::new(Arc::clone(&self.clock), random, metrics.clone(), Arc::new(recorder));
        core.set_initial(if self.chance(2) { Initial::Stream } else { Initial::Pages });
        WholeManager::default().wire(&mut core)?;
        let service = self.service(&mut core, &metrics)?;
        let keeper = Keeper::new(environment, Served::by(&service), 9443, Arc::clone(&self.clock));
        let keeper = Arc::new(keeper);
        keeper.watch(&mut core);
        let candidacy = Candidacy {
            lease: Duration::from_mins(2),
            renew: Duration::from_secs(80),
            retry: Duration::from_secs(20),
            release: self.chance(2),
            ..Candidacy::new("default", "simulated", format!("replica-{number}"))
        };
        let settings = Settings {
            field_manager: "simulated",
            requests_per_second: 20.0,
            requests_burst: 30,
            candidacy: Some(candidacy),
            metrics: None,
            health: None,
            host: "simulated".to_owned(),
        };
        let network = Network::new(self.stage.server(), Arc::clone(&self.weather), number);
        let client = Client::new(network, "default");
        let manager = Manager::timed_by(Arc::clone(&self.clock), core, client, told, settings);
        let (core, stop, api) = (Arc::clone(manager.core()), CancellationToken::new(), manager.api().clone());
        let running = tokio::spawn(manager.run(stop.clone()));
        let caring = tokio::spawn({
            let (keeper, stop) = (Arc::clone(&keeper), stop.clone());
            async move { keeper.run(&api, &stop).await }
        });
        self.way.open(Reached { number, service, keeper });
        self.replicas.push(Replica { number, core, stop, running, caring, _folder: folder });
        Ok(())
    }

    fn service(&self, core: &mut Core, metrics: &Metrics) -> Result<Service, String> {
        let counters = koord_webhook::Metrics::register(metrics);
        let counters = counters.map_err(|error| error.to_string())?;
        let gate = |name: &str| GATES.contains(&name);
        let ctx = Arc::new(koord_webhooks::Ctx::watch(core, gate, koord_webhooks::Settings::default()));
        let builder = ServiceBuilder::new(counters, Arc::clone(&self.clock));
        Ok(koord_webhooks::serve(builder, &ctx, gate).build())
    }

    /// A program that ends answers no reviews any more.
    fn end(&self, replica: &Replica) {
        self.way.close(replica.number);
        replica.stop.cancel();
    }

    /// A while, something that people do, and what goes wrong with programs and their certificates.
    async fn trouble(&mut self) -> Result<(), String> {
        let longest = if self.chance(30) { Duration::from_mins(20) } else { Duration::from_secs(20) };
        self.pass(self.weather.span(longest)).await?;
        let Written { what, fault } = self.people.act().await?;
        if let Some(fault) = fault {
            self.weather.struck(fault);
        }
        self.weather.note(format_args!("a person: {what}"));
        if self.chance(3) {
            self.stage.tidy();
        }
        if self.chance(30) {
            let victim = usize::try_from(self.weather.below(self.replicas.len() as u64)).unwrap_or_default();
            let victim = self.replicas.remove(victim);
            self.weather.struck(Fault::Crash);
            self.weather.note(format_args!("a program dies"));
            self.way.close(victim.number);
            victim.running.abort();
            victim.caring.abort();
            self.begin_life()?;
        }
        if self.chance(40) {
            self.weather.begin_outage(self.weather.span(Duration::from_mins(2)));
        }
        Ok(())
    }

    async fn pass(&mut self, span: Duration) -> Result<(), String> {
        self.clock.sleep(span).await;
        self.weather.broken()?;
        if self.replicas.iter().any(|replica| replica.running.is_finished() || replica.caring.is_finished()) {
            return Err("a program ended by itself".to_owned());
        }
        Ok(())
    }

    async fn silence(&mut self, when: &str) -> Result<(), String> {
        let before = self.weather.writes();
        self.pass(SILENCE).await?;
        match self.weather.writes() - before {
            0 => Ok(()),
            writes => Err(format!("{writes} writes in {SILENCE:?} {when}")),
        }
    }

    /// A program that was told to stop has done so, and its caches were right.
    fn compare(&self, old: &Replica) -> Result<(), String> {
        if !old.running.is_finished() || !old.caring.is_finished() {
            return Err("a program that was told to stop goes on".to_owned());
        }
        let news = self.replicas.iter().flat_map(|replica| replica.core.watches());
        for (old, new) in old.core.watches().iter().zip(news) {
            let differences = old.differences(new);
            if !differences.is_empty() {
                return Err(format!("the cache of {} differs: {differences:?}", old.kind.plural));
            }
        }
        Ok(())
    }

    fn chance(&self, one_in: u64) -> bool {
        self.random.below(one_in) == 0
    }
}
