//! How hooks are delivered: what flags say.

use std::{path::PathBuf, time::Duration};

use koord_koordlet_protocols::{backoff::Backoff, listen::ListenAddress};

/// How hooks are delivered, and what else of the node is connected.
#[derive(Clone, Debug)]
pub struct DeliverySettings {
    /// `None` where NRI is switched off.
    pub nri: Option<NriSettings>,
    /// Where the hook server listens.
    pub hook_server: ListenAddress,
    /// The address of the hook server as the runtime proxy finds it.
    pub host_endpoint: String,
    /// The folder in which the runtime proxy looks for hook servers.
    pub proxy_configuration: PathBuf,
    /// The folder of Terway, whose agent limits the network of pods.
    pub terway: PathBuf,
    /// `None` where the proxy of pod resources is switched off.
    pub pod_resources: Option<PodResourcesSettings>,
    /// Whether triggers for pressure are set in the kernel.
    pub pressure_triggers: bool,
}

/// How the agent registers with NRI.
#[derive(Clone, Debug, PartialEq)]
pub struct NriSettings {
    pub socket: PathBuf,
    pub plugin_name: String,
    pub plugin_index: String,
    /// Longest wait for the runtime to configure the plugin, and how long a connection has stood that counts as established.
    pub connect_timeout: Duration,
    pub first_pause: Duration,
    /// How often the pause grows, by which factor, and up to what.
    pub pauses_max: u32,
    pub pause_factor: f64,
    pub pause_cap: Duration,
}

/// Where pod resources are asked for and served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodResourcesSettings {
    /// The folder of the socket that is served.
    pub folder: PathBuf,
    /// The socket of the kubelet.
    pub kubelet: PathBuf,
}

/// Where no flag limits pauses, they end here: a runtime that was away for a day is found within a minute.
const PAUSE_MAX: Duration = Duration::from_mins(1);
/// The default of the flag is the longest time that Go knows.
const UNLIMITED: Duration = Duration::from_hours(24 * 365);

impl NriSettings {
    /// The pauses between attempts to connect.
    pub(crate) fn backoff(&self) -> Backoff {
        let cap = if self.pause_cap > UNLIMITED { PAUSE_MAX } else { self.pause_cap };
        // Pauses that have grown often enough stay as they are.
        let grown = Backoff { first: self.first_pause, factor: self.pause_factor, cap, jitter: 0.0 };
        let last = grown.delay(self.pauses_max.saturating_add(1), 0.0);
        Backoff { cap: cap.min(last), jitter: 0.1, ..grown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_as_often_as_the_flag_says() {
        let settings = NriSettings {
            socket: "/nri.sock".into(),
            plugin_name: "koordlet_nri".into(),
            plugin_index: "00".into(),
            connect_timeout: Duration::from_secs(6),
            first_pause: Duration::from_secs(1),
            pauses_max: i32::MAX.unsigned_abs(),
            pause_factor: 2.0,
            pause_cap: Duration::from_nanos((1 << 63) - 1),
        };
        let pauses = |settings: &NriSettings| {
            [1, 2, 3, 4, 100].map(|failures| settings.backoff().delay(failures, 0.0).as_secs())
        };
        assert_eq!(pauses(&settings), [1, 2, 4, 8, 60]);
        let twice = NriSettings { pauses_max: 2, ..settings.clone() };
        assert_eq!(pauses(&twice), [1, 2, 4, 4, 4]);
        let capped = NriSettings { pause_cap: Duration::from_mins(5), ..settings };
        assert_eq!(pauses(&capped), [1, 2, 4, 8, 300]);
    }
}
