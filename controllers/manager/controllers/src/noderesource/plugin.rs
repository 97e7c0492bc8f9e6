//! The parts of the controller that can be switched off one by one.

use koord_runtime::selected::selects;

/// A part of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plugin {
    /// What mid pods may use.
    MidResource,
    /// What batch pods may use.
    BatchResource,
    /// How fast the CPUs are.
    CpuNormalization,
    /// What is promised beyond what there is.
    ResourceAmplification,
    GpuDeviceResource,
    /// RDMA cards.
    RdmaDeviceResource,
}

impl Plugin {
    pub const ALL: [Self; 6] = [
        Self::MidResource,
        Self::BatchResource,
        Self::CpuNormalization,
        Self::ResourceAmplification,
        Self::GpuDeviceResource,
        Self::RdmaDeviceResource,
    ];

    /// The name in `--noderesource-plugins` and in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MidResource => "MidResource",
            Self::BatchResource => "BatchResource",
            Self::CpuNormalization => "CPUNormalization",
            Self::ResourceAmplification => "ResourceAmplification",
            Self::GpuDeviceResource => "GPUDeviceResource",
            Self::RdmaDeviceResource => "RDMADeviceResource",
        }
    }
}

/// The parts that are on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugins {
    on: Vec<Plugin>,
    /// Whether nodes also have `koordinator.sh/gpu.shared` (gate EnableSyncGPUSharedResource).
    pub gpu_shares: bool,
}

impl Default for Plugins {
    fn default() -> Self {
        Self { on: Plugin::ALL.to_vec(), gpu_shares: false }
    }
}

impl Plugins {
    /// Those that a list like that of `--noderesource-plugins` [selects].
    pub fn chosen<S: AsRef<str>>(words: &[S], gpu_shares: bool) -> Self {
        let is_on = |plugin: &Plugin| selects(words, plugin.name());
        Self { on: Plugin::ALL.into_iter().filter(is_on).collect(), gpu_shares }
    }

    /// Whether a part is on.
    pub fn has(&self, plugin: Plugin) -> bool {
        self.on.contains(&plugin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_selects_plugins_by_name() {
        let on = |words: &[&str]| {
            let plugins = Plugins::chosen(words, false);
            Plugin::ALL.into_iter().filter(|plugin| plugins.has(*plugin)).map(Plugin::name).collect::<Vec<_>>()
        };
        assert_eq!(on(&["*"]).len(), 6);
        assert_eq!(on(&["BatchResource", "MidResource"]), ["MidResource", "BatchResource"]);
        assert_eq!(on(&["BatchResource", " MidResource", "cpunormalization"]), ["BatchResource"]);
        assert_eq!(on(&["*", "-BatchResource "]).len(), 6);
        assert_eq!(on(&[" *"]), [""; 0]);
        assert_eq!(on(&["-BatchResource", "*"]).len(), 5);
        assert_eq!(on(&["*", "-BatchResource"]).len(), 5);
        assert_eq!(on(&["none"]), [""; 0]);
    }
}
