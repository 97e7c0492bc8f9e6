//! How hooks are made of the configuration: a program registers a factory for each kind of hook that it has.

use std::{collections::BTreeMap, fmt, sync::Arc};

use koord_config::scheduler::HookPlugin;
use serde_json::Value;

use super::{BoxError, Hook, QuotaHook};

/// Makes a hook with this key of these arguments, or says what is wrong with them.
type Factory = Arc<dyn Fn(&str, &Value) -> Result<Box<dyn QuotaHook>, BoxError> + Send + Sync>;

/// The kinds of hooks that a program has, by what `factoryKey` names.
#[derive(Clone, Default)]
pub struct HookFactories(BTreeMap<String, Factory>);

/// Why a hook of the configuration cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// The program has no hooks of this kind.
    #[error("there is no factory {factory:?} of hook plugins; this scheduler has {known}")]
    UnknownFactory {
        factory: String,
        /// The kinds that it has.
        known: String,
    },
    /// The factory does not take the arguments.
    #[error("the factory {factory:?} of hook plugins cannot use the arguments: {reason}")]
    Args {
        factory: String,
        /// What is wrong with them.
        reason: String,
    },
}

impl HookError {
    /// The field of the hook that is wrong.
    pub fn field(&self) -> &'static str {
        match self {
            Self::UnknownFactory { .. } => "factoryKey",
            Self::Args { .. } => "factoryArgs",
        }
    }
}

impl HookFactories {
    /// No factories.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds a factory, instead of one of the same key. It is given the key of the hook and its arguments.
    pub fn register(
        &mut self,
        factory_key: impl Into<String>,
        factory: impl Fn(&str, &Value) -> Result<Box<dyn QuotaHook>, BoxError> + Send + Sync + 'static,
    ) {
        self.0.insert(factory_key.into(), Arc::new(factory));
    }

    /// A hook of the configuration.
    pub fn hook(&self, configured: &HookPlugin) -> Result<Hook, HookError> {
        let HookPlugin { key, factory_key, factory_args } = configured;
        let Some(factory) = self.0.get(factory_key) else {
            let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(HookError::UnknownFactory { factory: factory_key.clone(), known });
        };
        let hook = factory(key, factory_args);
        let hook =
            hook.map_err(|reason| HookError::Args { factory: factory_key.clone(), reason: reason.to_string() })?;
        Ok(Hook::new(key, hook))
    }
}

impl fmt::Debug for HookFactories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Nothing;

    impl QuotaHook for Nothing {
        fn copy(&self) -> Box<dyn QuotaHook> {
            Box::new(Self)
        }
    }

    fn configured(factory_key: &str, factory_args: Value) -> HookPlugin {
        HookPlugin { key: "audit".to_owned(), factory_key: factory_key.to_owned(), factory_args }
    }

    #[test]
    fn a_hook_is_made_by_the_factory_that_it_names() {
        let mut factories = HookFactories::new();
        let error = factories.hook(&configured("auditors", json!({}))).unwrap_err();
        let message = "there is no factory \"auditors\" of hook plugins; this scheduler has none";
        assert_eq!((error.to_string().as_str(), error.field()), (message, "factoryKey"));
        factories.register("auditors", |key, args| match args["limit"].as_u64() {
            Some(_) => Ok(Box::new(Nothing)),
            None => Err(format!("{key} needs a limit").into()),
        });
        let hook = factories.hook(&configured("auditors", json!({"limit": 3}))).unwrap();
        assert_eq!(format!("{hook:?} {factories:?}"), "Hook(\"audit\") {\"auditors\"}");
        let error = factories.hook(&configured("auditors", json!({}))).unwrap_err();
        let message = "the factory \"auditors\" of hook plugins cannot use the arguments: audit needs a limit";
        assert_eq!((error.to_string().as_str(), error.field()), (message, "factoryArgs"));
        let error = factories.hook(&configured("limits", json!({}))).unwrap_err();
        assert!(error.to_string().ends_with("this scheduler has auditors"), "{error}");
    }
}
