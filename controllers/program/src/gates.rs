//! Feature gates with Kubernetes' semantics: `--feature-gates=A=true,AllAlpha=false`.

use std::collections::BTreeMap;

/// How far a feature has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// May change or go; off unless asked for.
    Alpha,
    /// Well tested.
    Beta,
    /// Here to stay.
    Stable,
}

/// A gate that a program knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Name, in CamelCase.
    pub name: &'static str,
    /// Whether the feature is on when nobody says anything.
    pub default: bool,
    /// How far the feature has come.
    pub stage: Stage,
    /// Why the gate is accepted without an effect; none for one that something is done by.
    pub no_effect: Option<&'static str>,
}

impl Gate {
    /// A gate that is off unless it is asked for.
    pub const fn alpha(name: &'static str) -> Self {
        Self { name, default: false, stage: Stage::Alpha, no_effect: None }
    }

    /// A gate of a feature that is well tested.
    pub const fn beta(name: &'static str, default: bool) -> Self {
        Self { name, default, stage: Stage::Beta, no_effect: None }
    }

    /// A gate of a feature that is here to stay.
    pub const fn stable(name: &'static str) -> Self {
        Self { name, default: true, stage: Stage::Stable, no_effect: None }
    }

    /// The same gate, accepted without an effect for this reason. A program says so at start where the gate is set.
    #[must_use]
    pub const fn without_effect(self, why: &'static str) -> Self {
        Self { no_effect: Some(why), ..self }
    }
}

/// Which features are on.
#[derive(Clone, Debug)]
pub struct Gates {
    known: &'static [Gate],
    set: BTreeMap<&'static str, bool>,
}

/// Why a list of gates cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// No such gate.
    #[error("unrecognized feature gate: {name}{}", suggestion.map(|known| format!("; did you mean {known}?")).unwrap_or_default())]
    Unknown {
        /// What was written.
        name: String,
        /// The nearest known gate.
        suggestion: Option<&'static str>,
    },
    /// Not `Name=true` or `Name=false`.
    #[error("{0:?} is not of the form Name=true or Name=false")]
    Malformed(String),
    /// The feature is here to stay.
    #[error("cannot set feature gate {0} to false: the feature is locked to true")]
    Locked(&'static str),
}

const ALL_ALPHA: &str = "AllAlpha";
const ALL_BETA: &str = "AllBeta";

impl Gates {
    /// The defaults of the gates that a program knows.
    pub fn new(known: &'static [Gate]) -> Self {
        Self { known, set: BTreeMap::new() }
    }

    /// The gates with a list like `A=true,B=false` applied. A gate's own setting beats `AllAlpha` and `AllBeta`,
    /// wherever they stand in the list; of two settings of one name the last counts.
    pub fn parse(known: &'static [Gate], list: &str) -> Result<Self, GateError> {
        let mut gates = Self::new(known);
        let mut all = Vec::new();
        for item in list.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let malformed = || GateError::Malformed(item.to_owned());
            let (name, value) = item.split_once('=').ok_or_else(malformed)?;
            let (name, value) = (name.trim(), truth(value.trim()).ok_or_else(malformed)?);
            // Programs of several components say which one is meant; here all gates are of one.
            let name = name.strip_prefix("kube:").unwrap_or(name);
            match name {
                ALL_ALPHA => all.push((Stage::Alpha, value)),
                ALL_BETA => all.push((Stage::Beta, value)),
                _ => {
                    let gate = gates.find(name)?;
                    if gate.stage == Stage::Stable && !value {
                        return Err(GateError::Locked(gate.name));
                    }
                    gates.set.insert(gate.name, value);
                }
            }
        }
        for (stage, value) in all.into_iter().rev() {
            for gate in known.iter().filter(|gate| gate.stage == stage) {
                gates.set.entry(gate.name).or_insert(value);
            }
        }
        Ok(gates)
    }

    /// Whether a feature is on. A name that is not known is off.
    pub fn enabled(&self, name: &str) -> bool {
        let default = || self.known.iter().find(|gate| gate.name == name).is_some_and(|gate| gate.default);
        self.set.get(name).copied().unwrap_or_else(default)
    }

    /// What the list says of a gate, by its name or by that of its group; none where it says nothing.
    pub fn stated(&self, name: &str) -> Option<bool> {
        self.set.get(name).copied()
    }

    /// The gates that are set otherwise than by default and have no effect, each with the reason.
    pub fn without_effect(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let changed = self.iter().filter(|(gate, is_on)| gate.default != *is_on);
        changed.filter_map(|(gate, _)| Some((gate.name, gate.no_effect?)))
    }

    /// Logs which of them were set and have no effect.
    pub fn warn_without_effect(&self) {
        for (gate, why) in self.without_effect() {
            tracing::warn!(gate, "the feature gate has no effect: {why}");
        }
    }

    /// Every gate with its state, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (Gate, bool)> {
        self.known.iter().map(|gate| (*gate, self.enabled(gate.name)))
    }

    fn find(&self, name: &str) -> Result<Gate, GateError> {
        let found = self.known.iter().find(|gate| gate.name == name);
        found.copied().ok_or_else(|| {
            let names = self.known.iter().map(|gate| gate.name);
            let near = names.map(|known| (strsim::jaro_winkler(known, name), known)).filter(|(score, _)| *score > 0.8);
            let nearest = near.max_by(|(a, _), (b, _)| a.total_cmp(b));
            GateError::Unknown { name: name.to_owned(), suggestion: nearest.map(|(_, known)| known) }
        })
    }
}

/// Go's `strconv.ParseBool`.
pub(crate) fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Gate] = &[
        Gate::beta("PodMutatingWebhook", true).without_effect("nobody calls it"),
        Gate::alpha("MultiQuotaTree"),
        Gate::alpha("DisableDefaultQuota").without_effect("there is none"),
        Gate::stable("Core"),
    ];

    fn on(list: &str) -> Result<Vec<&'static str>, String> {
        let gates = Gates::parse(KNOWN, list).map_err(|error| error.to_string())?;
        Ok(gates.iter().filter(|(_, on)| *on).map(|(gate, _)| gate.name).collect())
    }

    #[test]
    fn a_gates_own_setting_beats_its_group() {
        assert_eq!(on("").unwrap(), ["PodMutatingWebhook", "Core"]);
        assert_eq!(on("AllBeta=true,MultiQuotaTree=true,MultiQuotaTree=false,AllBeta=false").unwrap(), ["Core"]);
        assert_eq!(on("MultiQuotaTree=T, PodMutatingWebhook=0").unwrap(), ["MultiQuotaTree", "Core"]);
        assert_eq!(
            on("MultiQuotaTree=false,AllAlpha=true").unwrap(),
            ["PodMutatingWebhook", "DisableDefaultQuota", "Core"]
        );
        assert_eq!(on("AllBeta=false").unwrap(), ["Core"]);
    }

    #[test]
    fn gates_without_effect_are_named_where_they_are_set() {
        let named = |list: &str| Gates::parse(KNOWN, list).unwrap().without_effect().collect::<Vec<_>>();
        assert_eq!(named("PodMutatingWebhook=true,DisableDefaultQuota=false,MultiQuotaTree=true"), []);
        assert_eq!(named("PodMutatingWebhook=false"), [("PodMutatingWebhook", "nobody calls it")]);
        assert_eq!(named("AllAlpha=true"), [("DisableDefaultQuota", "there is none")]);
    }

    #[test]
    fn a_gate_is_stated_by_its_name_or_by_its_group() {
        let stated = |list: &str| Gates::parse(KNOWN, list).unwrap().stated("MultiQuotaTree");
        assert_eq!(stated("DisableDefaultQuota=true,AllBeta=false"), None);
        assert_eq!([stated("MultiQuotaTree=false"), stated("AllAlpha=true")], [Some(false), Some(true)]);
    }

    #[test]
    fn wrong_lists_say_what_would_be_right() {
        assert_eq!(
            on("MultiQuotasTree=true").unwrap_err(),
            "unrecognized feature gate: MultiQuotasTree; did you mean MultiQuotaTree?"
        );
        assert_eq!(on("zzz=true").unwrap_err(), "unrecognized feature gate: zzz");
        assert_eq!(on("Core").unwrap_err(), r#""Core" is not of the form Name=true or Name=false"#);
        assert_eq!(
            on("Core=false").unwrap_err(),
            "cannot set feature gate Core to false: the feature is locked to true"
        );
    }
}
