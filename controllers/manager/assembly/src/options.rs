//! The flags of the manager: those of the original, with its defaults.

use std::time::Duration;

use clap::{
    ArgAction, Parser,
    builder::{PossibleValuesParser, TypedValueParser as _},
};
use koord_manager_controllers::colocationprofile;
use koord_program::{
    ControllerFlags, ControllerSettings,
    flags::{count, from_go, span, span_or_none, switch},
};
use koord_runtime::selected::selects;
use koord_webhook_handlers::{BindingPolicy, DECLARED_WEBHOOKS, Declared, ObjectName, Retries};

use crate::identity::BUILD;

/// Controllers and admission webhooks of Koordinator.
#[derive(Clone, Debug, Parser)]
#[command(name = "koord-manager", version, disable_help_subcommand = true, args_override_self = true)]
pub struct Options {
    /// The flags of every program with controllers.
    #[command(flatten)]
    pub program: ControllerFlags,
    /// Controllers to run: names, * for all, -NAME for all but one, none.
    #[arg(long, default_value = "*", value_delimiter = ',', allow_hyphen_values = true, value_name = "NAMES")]
    pub controllers: Vec<String>,
    /// Plugins of the noderesource controller: names, * for all, -NAME for all but one.
    #[arg(long, default_value = "*", value_delimiter = ',', allow_hyphen_values = true, value_name = "NAMES")]
    pub noderesource_plugins: Vec<String>,
    /// Name of the ConfigMap with the colocation and NodeSLO configuration.
    #[arg(long, default_value = "slo-controller-config", value_name = "NAME")]
    pub slo_config_name: String,
    /// Namespace of that ConfigMap.
    #[arg(long, default_value = "koordinator-system", value_name = "NAMESPACE")]
    pub config_namespace: String,
    /// Whether a strategy for nodes must have a name that no other has.
    #[arg(long, default_value = "false", value_parser = switch, action = ArgAction::Set)]
    pub node_strategy_name_need_check: bool,
    /// Namespace of the configuration of the enhanced pod validator.
    #[arg(long, default_value = "koordinator-system", value_name = "NAMESPACE")]
    pub pod_enhanced_validator_config_namespace: String,
    /// Name of the configuration of the enhanced pod validator.
    #[arg(long, default_value = "pod-enhanced-validator-config", value_name = "NAME")]
    pub pod_enhanced_validator_config_name: String,
    /// How often that configuration is read again.
    #[arg(long, default_value = "5m", value_name = "DURATION")]
    pub pod_enhanced_validator_reconcile_interval: String,
    /// How often a charge to a quota is tried again after a conflict; at least 3.
    #[arg(long, default_value = "3", allow_negative_numbers = true, value_parser = count)]
    quota_update_max_retries: u32,
    /// Longest random pause before such a try.
    #[arg(long, default_value = "0", value_name = "DURATION", value_parser = span)]
    quota_update_retry_jitter: Duration,
    /// The longest such pauses may last together.
    #[arg(long, default_value = "1s", value_name = "DURATION", value_parser = span)]
    quota_update_max_total_jitter: Duration,
    /// Accepted for compatibility: such a try always reads the quota from the API server.
    #[arg(long, default_value = "false", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          action = ArgAction::Set, value_parser = switch, hide = true)]
    quota_update_conflict_fresh_get: bool,
    /// Parts of the names of users who may bind pods; empty lets everybody.
    #[arg(long, default_value = "", value_delimiter = ',', value_name = "PARTS")]
    pub binding_admission_user_name: Vec<String>,
    /// Refuse no binding.
    #[arg(long, default_value = "false", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          action = ArgAction::Set, value_parser = switch)]
    pub binding_admission_dry_run: bool,
    /// Namespaces whose bindings are looked at: * for all, empty for none.
    #[arg(long, default_value = "", value_delimiter = ',')]
    pub binding_admission_namespaces: Vec<String>,
    /// Namespaces whose bindings are not looked at.
    #[arg(long, default_value = "kube-system", value_delimiter = ',')]
    pub binding_admission_exclude_namespaces: Vec<String>,
    /// Labels of pods whose bindings are not looked at.
    #[arg(long, default_value = "koordinator.sh/binding-admission-bypass", value_delimiter = ',')]
    pub binding_admission_bypass_labels: Vec<String>,
    /// Annotations of pods whose bindings are not looked at.
    #[arg(long, default_value = "", value_delimiter = ',')]
    pub binding_admission_bypass_annotations: Vec<String>,
    /// Whether profiles without the label config.koordinator.sh/controller-managed are applied by the controller too.
    #[arg(long, default_value = "false", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          action = ArgAction::Set, value_parser = switch)]
    colocation_profile_reconcile_by_default: bool,
    /// How often profiles are applied to pending pods; 0 for only when they change.
    #[arg(long, default_value = "30s", value_name = "DURATION", value_parser = span_or_none, allow_hyphen_values = true)]
    colocation_profile_reconcile_interval: Duration,
    /// How long a pod counts as up to date with a profile; 0 for until the profile changes.
    #[arg(long, default_value = "5m", value_name = "DURATION", value_parser = span_or_none, allow_hyphen_values = true)]
    colocation_profile_force_update_pod_duration: Duration,
    /// How often pods are forgotten that need not be remembered.
    #[arg(long, default_value = "10m", value_name = "DURATION", value_parser = span_or_none, allow_hyphen_values = true)]
    colocation_profile_expire_pod_cache_duration: Duration,
    /// Pods per second to which profiles are applied.
    #[arg(long, default_value_t = 10.0, allow_negative_numbers = true)]
    colocation_profile_update_pod_qps: f32,
    /// Pods to which profiles may be applied at once.
    #[arg(long, default_value = "100", allow_negative_numbers = true, value_parser = count)]
    colocation_profile_update_pod_qps_burst: u32,
    /// Warn users, in the answers of the webhooks, of what they wrote and what has no effect: a value that a profile
    /// overwrites, a quota that does not exist, labels and annotations that no component reads.
    #[arg(long, default_value = "false", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          action = ArgAction::Set, value_parser = switch)]
    admission_warnings: bool,
    /// What becomes of requests that break rules of Reservation, PodMigrationJob, NodeSLO, Device and ElasticQuota which the original never
    /// enforced: warn admits them with a warning and counts them, enforce denies them and gives defaults, off looks at none. Without it what the
    /// gate DeclaredWebhooks says where it is set (true is enforce, false is off), else warn.
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(Declared::WORDS).map(|word| Declared::of(&word)))]
    declared_webhooks: Option<Declared>,
    /// Accepted for compatibility: caches here are never copied.
    #[arg(long, default_value = "false", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          action = ArgAction::Set, value_parser = switch, hide = true)]
    disable_no_deepcopy: bool,
}

/// Options whose values have been checked.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The options.
    pub options: Options,
    /// What the flags of every program with controllers mean.
    pub settings: ControllerSettings,
}

impl Checked {
    /// Whether a feature is on.
    pub fn enabled(&self, gate: &str) -> bool {
        self.settings.gates.enabled(gate)
    }

    /// What becomes of requests that break rules which the original never enforced.
    pub fn declared_webhooks(&self) -> Declared {
        let by_gate = || self.settings.gates.stated(DECLARED_WEBHOOKS).map(Declared::of_gate);
        self.options.declared_webhooks.or_else(by_gate).unwrap_or_default()
    }

    /// What the webhook handlers ask for.
    pub fn webhook_settings(&self) -> koord_webhook_handlers::Settings {
        koord_webhook_handlers::Settings { declared: self.declared_webhooks(), ..self.options.webhook_settings() }
    }
}

impl Options {
    /// Reads Go-style arguments, the program's name first.
    pub fn from_arguments(arguments: impl IntoIterator<Item = String>) -> Result<Self, clap::Error> {
        Self::try_parse_from(from_go(arguments))
    }

    /// Checks values that are more than words.
    pub fn check(self) -> Result<Checked, clap::Error> {
        let settings = self.program.check(&BUILD)?;
        Ok(Checked { options: self, settings })
    }

    /// How often a charge to a quota is tried again.
    pub fn quota_retries(&self) -> Retries {
        Retries {
            max: self.quota_update_max_retries,
            jitter: self.quota_update_retry_jitter,
            jitter_total: self.quota_update_max_total_jitter,
        }
    }

    /// How profiles are applied to pods that are there already.
    pub fn colocation_profiles(&self) -> colocationprofile::Settings {
        colocationprofile::Settings {
            by_default: self.colocation_profile_reconcile_by_default,
            interval: self.colocation_profile_reconcile_interval,
            force_after: self.colocation_profile_force_update_pod_duration,
            forget_every: self.colocation_profile_expire_pod_cache_duration,
            per_second: self.colocation_profile_update_pod_qps,
            burst: self.colocation_profile_update_pod_qps_burst,
        }
    }

    fn webhook_settings(&self) -> koord_webhook_handlers::Settings {
        let list = |items: &[String]| {
            let items = items.iter().map(|item| item.trim());
            items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
        };
        koord_webhook_handlers::Settings {
            slo_config: ObjectName::new(&self.config_namespace, &self.slo_config_name),
            strategy_names_needed: self.node_strategy_name_need_check,
            required_labels: ObjectName::new(
                &self.pod_enhanced_validator_config_namespace,
                &self.pod_enhanced_validator_config_name,
            ),
            bindings: BindingPolicy {
                users: list(&self.binding_admission_user_name),
                everywhere: self.binding_admission_namespaces == ["*"],
                namespaces: list(&self.binding_admission_namespaces),
                excluded_namespaces: list(&self.binding_admission_exclude_namespaces),
                bypass_labels: list(&self.binding_admission_bypass_labels),
                bypass_annotations: list(&self.binding_admission_bypass_annotations),
                dry_run: self.binding_admission_dry_run,
            },
            admission_warnings: self.admission_warnings,
            ..koord_webhook_handlers::Settings::default()
        }
    }

    /// Whether `--controllers` lets a controller run.
    pub fn runs(&self, controller: &str) -> bool {
        selects(&self.controllers, controller)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Checked, String> {
        let arguments = std::iter::once("koord-manager").chain(line.split_whitespace()).map(str::to_owned);
        let checked = Options::from_arguments(arguments).and_then(Options::check);
        checked.map_err(|error| error.render().to_string())
    }

    #[test]
    fn the_defaults_are_the_originals() {
        let checked = parse("").unwrap();
        let Checked { options, settings } = &checked;
        assert_eq!(settings.traces, None);
        assert_eq!((settings.metrics.unwrap().address.port(), settings.health.unwrap().address.port()), (8080, 8000));
        assert_eq!(settings.lease_namespace.as_deref(), Some("koordinator-system"));
        assert!(settings.namespaces.is_empty());
        assert_eq!((settings.requests_per_second.to_string().as_str(), settings.requests_burst), ("30", 50));
        assert_eq!(
            (&*options.config_namespace, &*options.slo_config_name),
            ("koordinator-system", "slo-controller-config")
        );
        assert!(!checked.webhook_settings().admission_warnings);
        assert_eq!(checked.webhook_settings().declared, Declared::Warn);
        assert_eq!(options.colocation_profiles(), colocationprofile::Settings::default());
        assert!(checked.enabled("WebhookFramework") && !checked.enabled("DeclaredWebhooks"));
    }

    #[test]
    fn flags_may_be_written_as_go_programs_take_them() {
        let checked = parse(
            "-v=4 -enable_leader_election=false --metrics-addr :0 --feature-gates AllAlpha=T --stderrthreshold=INFO -logtostderr",
        );
        let checked = checked.unwrap();
        assert_eq!(
            (checked.settings.lease_namespace.as_ref(), checked.settings.metrics.unwrap().address.port()),
            (None, 0)
        );
        assert_eq!(
            checked.options.program.log_filter(&[]),
            "warn,h2=error,kube_client::client::builder=off,koord=debug"
        );
        assert!(checked.enabled("DeclaredWebhooks"));
    }

    #[test]
    fn what_becomes_of_the_derived_rules_is_a_flag_and_the_gate_its_alias() {
        let declared = |line: &str| parse(line).unwrap().declared_webhooks();
        assert_eq!(declared("--feature-gates=DeclaredWebhooks=true"), Declared::Enforce);
        assert_eq!(declared("--feature-gates=DeclaredWebhooks=false"), Declared::Off);
        assert_eq!(declared("--feature-gates=AllAlpha=true,MultiQuotaTree=false"), Declared::Enforce);
        assert_eq!(declared("--feature-gates=AllBeta=false,MultiQuotaTree=true"), Declared::Warn);
        for (word, meant) in [("off", Declared::Off), ("warn", Declared::Warn), ("enforce", Declared::Enforce)] {
            assert_eq!(declared(&format!("--declared-webhooks={word} --feature-gates=AllAlpha=true")), meant);
        }
        let error = parse("--declared-webhooks=on").unwrap_err();
        assert!(error.contains("off, warn, enforce"), "{error}");
    }

    #[test]
    fn flags_may_be_given_again_and_numbers_may_be_negative() {
        let checked = parse(
            "--feature-gates=AllAlpha=true,MultiQuotaTree=false --feature-gates=PodMutatingWebhook=false --metrics-addr=:1 --metrics-addr=:2 \
             --controllers=nodeslo --controllers=nodemetric --rest-config-burst=-1 --rest-config-qps -1 --quota-update-max-retries -1",
        );
        let checked = checked.unwrap();
        let on = ["NodeMutatingWebhook", "MultiQuotaTree", "PodMutatingWebhook", "PodValidatingWebhook"];
        assert_eq!(on.map(|gate| checked.enabled(gate)), [true, false, false, true]);
        let Checked { options, settings } = checked;
        assert_eq!(settings.metrics.unwrap().address.port(), 2, "the last one counts");
        assert!(options.runs("nodeslo") && options.runs("nodemetric") && !options.runs("noderesource"));
        assert_eq!((settings.requests_burst, options.quota_retries().max), (0, 0));
    }

    #[test]
    fn durations_of_profiles_may_be_nothing_or_less() {
        let line = "--colocation-profile-reconcile-interval=-1s --colocation-profile-force-update-pod-duration=0 \
            --colocation-profile-expire-pod-cache-duration -10m";
        let profiles = parse(line).unwrap().options.colocation_profiles();
        assert_eq!([profiles.interval, profiles.force_after, profiles.forget_every], [Duration::ZERO; 3]);
        assert!(parse("--colocation-profile-reconcile-interval=5").unwrap_err().contains("missing unit"));
    }

    #[test]
    fn a_wrong_flag_says_what_would_be_right() {
        let error = parse("--slo-config-nam=x").unwrap_err();
        assert!(error.contains("'--slo-config-name'"), "{error}");
        let error = parse("--otlp-endpoint=collector:4318").unwrap_err();
        assert!(error.contains("--otlp-endpoint: \"collector:4318\" is no address such as"), "{error}");
        let error = parse("--metrics-addr=8080").unwrap_err();
        assert!(error.contains("--metrics-addr: \"8080\" is no address"), "{error}");
        let error = parse("--feature-gates=MultiQuotaTre=true").unwrap_err();
        assert!(error.contains("did you mean MultiQuotaTree?"), "{error}");
        assert!(parse("--enable-leader-election=yes").unwrap_err().contains("neither true nor false"));
    }

    #[test]
    fn controllers_are_chosen_by_name() {
        let run = |list: &str| {
            let options = parse(list).unwrap().options;
            ["nodemetric", "nodeslo"].map(|name| options.runs(name))
        };
        assert_eq!(run(""), [true, true]);
        assert_eq!(run("--controllers=none"), [false, false]);
        assert_eq!(run("--controllers=*,-nodeslo"), [true, false]);
        assert_eq!(run("--controllers=nodeslo,quotaprofile"), [false, true]);
        assert_eq!(run("--controllers -nodeslo,*"), [true, false]);
    }

    #[test]
    fn every_flag_of_the_original_is_taken() {
        let command = Options::command();
        let known: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
        let original = "metrics-addr health-probe-addr enable-leader-election leader-election-namespace \
            leader-elect-resource-lock namespace enable-pprof pprof-addr sync-period rest-config-qps rest-config-burst \
            controllers noderesource-plugins slo-config-name config-namespace node-strategy-name-need-check \
            pod-enhanced-validator-config-namespace pod-enhanced-validator-config-name \
            pod-enhanced-validator-reconcile-interval quota-update-max-retries quota-update-retry-jitter \
            quota-update-max-total-jitter quota-update-conflict-fresh-get binding-admission-user-name \
            binding-admission-dry-run binding-admission-namespaces binding-admission-exclude-namespaces \
            binding-admission-bypass-labels binding-admission-bypass-annotations colocation-profile-reconcile-by-default \
            colocation-profile-reconcile-interval colocation-profile-force-update-pod-duration \
            colocation-profile-expire-pod-cache-duration colocation-profile-update-pod-qps \
            colocation-profile-update-pod-qps-burst disable-no-deepcopy kubeconfig feature-gates v vmodule \
            logtostderr alsologtostderr stderrthreshold log-dir log-file log-file-max-size one-output skip-headers \
            skip-log-headers add-dir-header log-backtrace-at legacy-stderr-threshold-behavior";
        let missing: Vec<&str> = original.split_whitespace().filter(|flag| !known.contains(flag)).collect();
        assert_eq!(missing, [""; 0]);
    }
}
