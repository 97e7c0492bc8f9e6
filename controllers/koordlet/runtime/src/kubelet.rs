//! When the kubelet is asked for its pods and its configuration, and what of its answers is kept.

use std::{sync::Arc, time::Duration};

use koord_core::clock::Moment;
use koord_koordlet_framework::{Pod, PodReader};
use koord_koordlet_reports::KubeletConfiguration;
use koord_koordlet_system::Layout;

use crate::{capability::Capabilities, exchange::KubeletPath, settings::KubeletSettings};

/// What is known of the kubelet.
#[derive(Debug)]
pub(crate) struct Kubelet {
    settings: KubeletSettings,
    reader: PodReader,
    /// The pods of the last answer with any.
    pub(crate) pods: Arc<[Arc<Pod>]>,
    /// Counts changes of the pods.
    pub(crate) generation: u64,
    pub(crate) configuration: Option<KubeletConfiguration>,
    /// When pods were last answered.
    pub(crate) pods_at: Option<Moment>,
    /// When a configuration was last answered.
    pub(crate) configuration_at: Option<Moment>,
    /// Whether there was a list of pods.
    pub(crate) has_pods: bool,
    pods_request: Request,
    configuration_request: Request,
}

/// A request that is repeated.
#[derive(Clone, Copy, Debug, Default)]
struct Request {
    is_under_way: bool,
    /// When it was sent last.
    sent: Moment,
    /// When it is sent again; `None` for now.
    next: Option<Moment>,
    /// Whether the answer that is under way is too old already.
    is_outdated: bool,
}

/// How long a configuration counts.
const CONFIGURATION_AGE: Duration = Duration::from_mins(1);
/// How soon a configuration is asked for again that was not given.
const CONFIGURATION_RETRY: Duration = Duration::from_secs(3);

pub(crate) const FEATURE: &str = "kubelet";
pub(crate) const CONFIGURATION_FEATURE: &str = "kubelet configuration";

impl Kubelet {
    pub(crate) fn new(settings: KubeletSettings) -> Self {
        Self {
            settings,
            reader: PodReader::default(),
            pods: Arc::default(),
            generation: 0,
            configuration: None,
            pods_at: None,
            configuration_at: None,
            has_pods: false,
            pods_request: Request::default(),
            configuration_request: Request::default(),
        }
    }

    /// The requests that are due; the agent asks none before it knows the node and so the address.
    pub(crate) fn requests(&mut self, now: Moment) -> Vec<KubeletPath> {
        let mut paths = Vec::new();
        if self.settings.sync.is_some() && self.pods_request.start(now) {
            paths.push(KubeletPath::Pods);
        }
        if self.settings.asks_configuration && self.has_pods && self.configuration_request.start(now) {
            paths.push(KubeletPath::Configuration);
        }
        paths
    }

    /// When the next request is due; `None` while one is under way, or never.
    pub(crate) fn due(&self) -> Option<Moment> {
        let pods = self.settings.sync.and_then(|_| self.pods_request.due());
        let configuration =
            (self.settings.asks_configuration && self.has_pods).then(|| self.configuration_request.due());
        pods.into_iter().chain(configuration.flatten()).min()
    }

    /// Pods have come or gone: they are read at once.
    pub(crate) fn hurry(&mut self, now: Moment) {
        self.pods_request.hurry(now);
    }

    /// Reads all pods again at once, though they have not changed: their folders have other names.
    pub(crate) fn read_anew(&mut self, now: Moment) {
        self.reader = PodReader::default();
        self.hurry(now);
    }

    /// When a path was asked for last.
    pub(crate) fn sent(&self, path: KubeletPath) -> Moment {
        match path {
            KubeletPath::Pods => self.pods_request.sent,
            KubeletPath::Configuration => self.configuration_request.sent,
        }
    }

    /// Takes an answer.
    pub(crate) fn answer(
        &mut self,
        path: KubeletPath,
        result: Result<Vec<u8>, String>,
        now: Moment,
        layout: Layout,
        capabilities: &mut Capabilities,
    ) {
        match path {
            KubeletPath::Pods => {
                self.pods_request.end(now + self.settings.sync.unwrap_or(Duration::MAX));
                self.pods(result, now, layout, capabilities);
            }
            KubeletPath::Configuration => {
                let configuration =
                    result.and_then(|body| KubeletConfiguration::parse(&body).map_err(|error| error.to_string()));
                let pause = if configuration.is_ok() { CONFIGURATION_AGE } else { CONFIGURATION_RETRY };
                self.configuration_request.end(now + pause);
                match configuration {
                    Ok(configuration) => {
                        self.configuration = Some(configuration);
                        self.configuration_at = Some(now);
                        capabilities.active(CONFIGURATION_FEATURE);
                    }
                    // The last good configuration counts on.
                    Err(reason) => {
                        let remedy = "let the agent's ServiceAccount get nodes/proxy and nodes/configz, or set --disable-query-kubelet-config";
                        capabilities.degraded(CONFIGURATION_FEATURE, reason, remedy);
                    }
                }
            }
        }
    }

    fn pods(&mut self, result: Result<Vec<u8>, String>, now: Moment, layout: Layout, capabilities: &mut Capabilities) {
        let list = result.and_then(|body| self.reader.read(&body, layout).map_err(|error| error.to_string()));
        let list = match list {
            Ok(list) => list,
            Err(reason) => {
                let remedy = "see whether the kubelet runs, and whether the agent's ServiceAccount may get nodes/proxy";
                capabilities.degraded(FEATURE, reason, remedy);
                return;
            }
        };
        for refused in &list.refused {
            tracing::warn!("{refused}");
        }
        // A kubelet that has just started knows no pods yet: those that ran still do.
        if list.pods.is_empty() {
            capabilities.degraded(FEATURE, "its list of pods is empty", "nothing, if the kubelet has just started");
            return;
        }
        capabilities.active(FEATURE);
        self.pods_at = Some(now);
        let is_same = self.pods.len() == list.pods.len()
            && self.pods.iter().zip(&list.pods).all(|(one, other)| Arc::ptr_eq(one, other));
        if !is_same || !self.has_pods {
            self.pods = list.pods.into();
            self.generation += 1;
            self.has_pods = true;
        }
    }
}

impl Request {
    fn start(&mut self, now: Moment) -> bool {
        if self.is_under_way || self.next.is_some_and(|next| next > now) {
            return false;
        }
        self.is_under_way = true;
        self.sent = now;
        true
    }

    /// Sends it at once, and after the answer that is under way.
    fn hurry(&mut self, now: Moment) {
        self.next = Some(now);
        self.is_outdated = self.is_under_way;
    }

    fn end(&mut self, next: Moment) {
        let next = if self.is_outdated { self.next } else { Some(next) };
        *self = Self { next, ..Self::default() };
    }

    fn due(&self) -> Option<Moment> {
        (!self.is_under_way).then(|| self.next.unwrap_or_default())
    }
}
