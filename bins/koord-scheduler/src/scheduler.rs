//! The scheduler as a program, with plugins of other crates.

use std::{process::ExitCode, sync::Arc};

use koord_program::logs;
use koord_resource::rbac::RbacRule;
use koord_scheduler_framework::Plugin;
use koord_scheduler_plugins_koordinator::elastic_quota::{BoxError, QuotaHook};
use serde_json::Value;

use crate::{Options, identity::NAME, permissions, plugins::Plugins, run::run_with_plugins};

/// The scheduler, with plugins beside its own.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use koord_scheduler_framework::{Plugin, Registration};
/// use koord_scheduler::Scheduler;
///
/// struct Silent;
///
/// impl Plugin for Silent {
///     fn name(&self) -> &'static str {
///         "Silent"
///     }
///
///     fn register(self: Arc<Self>) -> Registration {
///         Registration::of(&self)
///     }
/// }
///
/// fn main() -> std::process::ExitCode {
///     Scheduler::new().with_plugin(Silent).main()
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Scheduler {
    plugins: Plugins,
}

impl Scheduler {
    /// The scheduler with its own plugins.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a plugin to every profile, after those of the configuration. It is called at each extension point that it implements;
    /// its scores have the weight 1.
    #[must_use]
    pub fn with_plugin(self, plugin: impl Plugin) -> Self {
        self.with_weighted_plugin(plugin, 1)
    }

    /// Adds a plugin whose scores have this weight; with 0 it does not compare nodes.
    #[must_use]
    pub fn with_weighted_plugin(mut self, plugin: impl Plugin, weight: u16) -> Self {
        self.plugins.add(Arc::new(plugin), weight);
        self
    }

    /// Adds a kind of hooks of quotas. The arguments of ElasticQuota name it as the `factoryKey` of a hook; the factory makes the hook of
    /// its `key` and its `factoryArgs`, or says what is wrong with these. It is called for every profile, and when the configuration
    /// is checked.
    #[must_use]
    pub fn with_quota_hook(
        mut self,
        factory_key: &str,
        factory: impl Fn(&str, &Value) -> Result<Box<dyn QuotaHook>, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.plugins.hooks.add(factory_key, factory);
        self
    }

    /// Every permission that the program uses, with those to read what the plugins read.
    pub fn rbac_rules(&self) -> Vec<RbacRule> {
        permissions::rules_of(&self.plugins.reads())
    }

    /// Runs the program by its command line until it is told to end. Gives its exit code.
    pub fn main(self) -> ExitCode {
        let read = |arguments| {
            let checked = Options::from_arguments(arguments)?.check()?;
            logs::init(&checked.options.log_filter());
            Ok(checked)
        };
        koord_program::run(NAME, read, |checked, stop| run_with_plugins(self.plugins, checked, stop))
    }
}

#[cfg(test)]
mod tests {
    use koord_config::scheduler::HookPlugin;
    use koord_resource::controller::ResourceKind;
    use koord_scheduler_framework::{Profile, Registration};

    use super::*;

    struct Named(&'static str);

    impl Plugin for Named {
        fn name(&self) -> &'static str {
            self.0
        }

        fn register(self: Arc<Self>) -> Registration {
            Registration::of(&self).reads(&[ResourceKind::NODE])
        }
    }

    #[test]
    fn a_name_is_that_of_one_plugin() {
        let scheduler = |name| Scheduler::new().with_plugin(Named("Own")).with_weighted_plugin(Named(name), 0);
        let added = |name| scheduler(name).plugins.add_to(&mut Profile { scheduler: "s".into(), ..Profile::default() });
        assert!(added("Other").is_ok());
        assert_eq!(format!("{:#}", added("Own").unwrap_err()), "profile s: there are two plugins Own");
        assert_eq!(format!("{:?}", scheduler("Other")), "Scheduler { plugins: [\"Own\", \"Other\"] }");
    }

    #[test]
    fn a_hook_of_quotas_is_made_by_the_factory_that_it_names() {
        let scheduler =
            Scheduler::new().with_quota_hook("auditors", |key, _| Err(format!("{key} is not right").into()));
        let (key, factory_key) = ("audit".to_owned(), "auditors".to_owned());
        let configured = HookPlugin { key, factory_key, ..HookPlugin::default() };
        let error = scheduler.plugins.hooks.factories().hook(&configured).unwrap_err();
        assert!(error.to_string().ends_with("audit is not right"), "{error}");
    }

    #[test]
    fn a_plugin_may_read_what_it_says() {
        let rules = Scheduler::new().with_plugin(Named("Own")).rbac_rules();
        let nodes = rules.iter().filter(|rule| rule.resource == "nodes");
        assert_eq!((nodes.count(), rules.len()), (1, crate::rbac_rules().len()), "what others read too stands once");
    }
}
