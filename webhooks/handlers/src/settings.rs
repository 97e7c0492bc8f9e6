//! Flags of the program that handlers ask for.

use koord_types::slo_config;

/// Namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    pub namespace: String,
    pub name: String,
}

impl ObjectName {
    /// Names an object.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// As caches name it.
    pub(crate) fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// What becomes of requests that break rules which the original never enforced: those of the handlers that are derived from types, behind
/// the gate [`DECLARED_WEBHOOKS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Declared {
    /// Nobody looks at them.
    Off,
    /// They are admitted with a warning, and counted.
    #[default]
    Warn,
    /// They are denied, and defaults are given.
    Enforce,
}

/// The feature gate of the handlers that are derived from types. On it is [`Declared::Enforce`], off [`Declared::Off`].
pub const DECLARED_WEBHOOKS: &str = "DeclaredWebhooks";

impl Declared {
    /// The words of the flag.
    pub const WORDS: [&'static str; 3] = ["off", "warn", "enforce"];

    /// What a word of the flag means; `warn` where it is none.
    pub fn of(word: &str) -> Self {
        match word {
            "off" => Self::Off,
            "enforce" => Self::Enforce,
            _ => Self::Warn,
        }
    }

    /// What the state of the gate means.
    pub fn of_gate(on: bool) -> Self {
        if on { Self::Enforce } else { Self::Off }
    }
}

/// Flags of the program that handlers ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The configuration of the node controllers, which `/validate-configmap` checks.
    pub slo_config: ObjectName,
    /// Whether strategies for some nodes must have a name that no other has.
    pub strategy_names_needed: bool,
    /// The configuration of the labels that pods must have.
    pub required_labels: ObjectName,
    /// Who may bind pods.
    pub bindings: BindingPolicy,
    /// Whether users are warned of what they wrote and what has no effect.
    pub admission_warnings: bool,
    /// What becomes of requests that break rules which the original never enforced.
    pub declared: Declared,
}

impl Default for Settings {
    fn default() -> Self {
        let namespace = slo_config::CONFIG_MAP_NAMESPACE;
        Self {
            slo_config: ObjectName::new(namespace, slo_config::CONFIG_MAP_NAME),
            strategy_names_needed: false,
            required_labels: ObjectName::new(namespace, "pod-enhanced-validator-config"),
            bindings: BindingPolicy::default(),
            admission_warnings: false,
            declared: Declared::default(),
        }
    }
}

/// Who may bind pods to nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingPolicy {
    /// Parts of the names of users who may; empty lets everybody.
    pub users: Vec<String>,
    /// Whether this holds in all namespaces.
    pub everywhere: bool,
    /// Namespaces in which this holds otherwise.
    pub namespaces: Vec<String>,
    /// Namespaces in which it never holds.
    pub excluded_namespaces: Vec<String>,
    /// Labels of pods that everybody may bind.
    pub bypass_labels: Vec<String>,
    /// Annotations of pods that everybody may bind.
    pub bypass_annotations: Vec<String>,
    /// Nobody is refused.
    pub dry_run: bool,
}

impl Default for BindingPolicy {
    fn default() -> Self {
        Self {
            users: Vec::new(),
            everywhere: false,
            namespaces: Vec::new(),
            excluded_namespaces: vec!["kube-system".to_owned()],
            bypass_labels: vec!["koordinator.sh/binding-admission-bypass".to_owned()],
            bypass_annotations: Vec::new(),
            dry_run: false,
        }
    }
}
