//! The configuration under construction, and where its parts come from.

use koord_configuration::{Configuration as _, Problem, Problems, Step};
use koord_scheduling::Selector;
use serde_json::{Map, Value, json};

use super::{Consequence, Evictor, Note, Translation, arguments::Arguments};
use crate::descheduler::DeschedulerConfiguration;

/// Where a part of the configuration comes from.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) target: Vec<Step>,
    /// In the policy.
    pub(super) source: Vec<Step>,
    /// Whether the part has the same fields in the policy.
    pub(super) has_same_fields: bool,
}

pub(super) struct Builder {
    /// The plugin that evicts.
    pub(super) evictor: Evictor,
    members: Map<String, Value>,
    profiles: Vec<Value>,
    places: Vec<Place>,
    notes: Vec<Note>,
    problems: Problems,
}

/// A profile under construction.
pub(super) struct ProfileBuilder<'b> {
    builder: &'b mut Builder,
    index: usize,
    profile: Value,
}

/// A path by the keys in it. A key that is a number stands for an item of a list.
pub(super) fn path(keys: &[&str]) -> Vec<Step> {
    let step = |key: &&str| key.parse().map_or_else(|_| Step::Key((*key).to_owned()), Step::Index);
    keys.iter().map(step).collect()
}

/// A path and what is below it.
pub(super) fn below(at: &[Step], keys: &[&str]) -> Vec<Step> {
    at.iter().cloned().chain(path(keys)).collect()
}

/// A path into the parameters of a strategy, whose name is a key whatever it looks like.
pub(super) fn of_strategy(strategy: &str, keys: &[&str]) -> Vec<Step> {
    below(&[Step::Key("strategies".to_owned()), Step::Key(strategy.to_owned())], keys)
}

impl Builder {
    pub(super) fn new(evictor: Evictor) -> Self {
        Self {
            evictor,
            members: Map::new(),
            profiles: Vec::new(),
            places: Vec::new(),
            notes: Vec::new(),
            problems: Problems::default(),
        }
    }

    /// Sets a member of the configuration that has the same name in the policy.
    pub(super) fn copy(&mut self, name: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.members.insert(name.to_owned(), value.into());
            self.place(path(&[name]), path(&[name]), true);
        }
    }

    /// The selector of nodes, which is a text in a policy.
    pub(super) fn node_selector(&mut self, text: Option<&str>) {
        let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return };
        let at = path(&["nodeSelector"]);
        let selector = Selector::parse(text).map_err(|error| (error, None)).and_then(|selector| {
            let comparison = |term| {
                let message =
                    format!("{term:?} compares numbers, which the selector of a DeschedulerConfiguration cannot");
                (
                    message,
                    Some("select the nodes by another label, or by the list of its values: key in (a,b)".to_owned()),
                )
            };
            selector.to_label_selector().map_err(comparison)
        });
        match selector.map(|selector| json!(selector)) {
            Ok(selector) => {
                self.members.insert("nodeSelector".to_owned(), selector);
                self.place(at.clone(), at, false);
            }
            Err((message, suggestion)) => self.problem(at, message, suggestion),
        }
    }

    /// Begins a profile of this name, of this part of the policy.
    pub(super) fn profile(&mut self, name: &str, source: Vec<Step>) -> ProfileBuilder<'_> {
        let index = self.profiles.len();
        let evicts = json!({"disabled": [{"name": "*"}], "enabled": [{"name": self.evictor.name()}]});
        let profile = json!({"name": name, "plugins": {"evict": evicts, "filter": evicts}, "pluginConfig": []});
        self.profiles.push(Value::Null);
        self.place(path(&["profiles", &index.to_string()]), source, false);
        ProfileBuilder { builder: self, index, profile }
    }

    pub(super) fn has_profiles(&self) -> bool {
        !self.profiles.is_empty()
    }

    pub(super) fn place(&mut self, target: Vec<Step>, source: Vec<Step>, has_same_fields: bool) {
        self.places.push(Place { target, source, has_same_fields });
    }

    pub(super) fn note(
        &mut self,
        consequence: Consequence,
        path: Vec<Step>,
        message: impl Into<String>,
        remedy: Option<&str>,
    ) {
        let problem = Problem { path, message: message.into(), suggestion: remedy.map(str::to_owned) };
        self.notes.push(Note { consequence, problem });
    }

    pub(super) fn problem(&mut self, path: Vec<Step>, message: impl Into<String>, suggestion: Option<String>) {
        self.problems.extend([Problem { path, message: message.into(), suggestion }]);
    }

    pub(super) fn problems(&mut self, problems: impl IntoIterator<Item = Problem>) {
        self.problems.extend(problems);
    }

    /// The configuration, and what was found wrong with the policy.
    pub(super) fn finish(self) -> (Translation, Vec<Problem>) {
        let mut document = self.members;
        document.insert("apiVersion".to_owned(), DeschedulerConfiguration::API_VERSION.into());
        document.insert("kind".to_owned(), DeschedulerConfiguration::KIND.into());
        document.insert("profiles".to_owned(), self.profiles.into());
        let translation = Translation { document: document.into(), notes: self.notes, places: self.places };
        (translation, self.problems.into_vec())
    }
}

impl ProfileBuilder<'_> {
    pub(super) fn builder(&mut self) -> &mut Builder {
        self.builder
    }

    /// Enables a plugin in a set, unless it is enabled there already.
    pub(super) fn enable(&mut self, set: &str, plugin: &str, source: Vec<Step>) {
        let plugins = &mut self.profile["plugins"][set]["enabled"];
        if plugins.is_null() {
            *plugins = json!([]);
        }
        let Some(enabled) = plugins.as_array_mut() else { return };
        if enabled.iter().any(|known| known["name"] == plugin) {
            return;
        }
        let index = enabled.len().to_string();
        enabled.push(json!({"name": plugin}));
        let target = path(&["profiles", &self.index.to_string(), "plugins", set, "enabled", &index]);
        self.builder.place(target, source, false);
    }

    /// Adds the arguments of a plugin. `source` is the place of the plugin in the policy.
    pub(super) fn configure(&mut self, plugin: &str, args: Arguments, source: Vec<Step>) {
        let Some(configs) = self.profile["pluginConfig"].as_array_mut() else { return };
        let at = path(&["profiles", &self.index.to_string(), "pluginConfig", &configs.len().to_string()]);
        let Arguments { value, places } = args;
        configs.push(json!({"name": plugin, "args": value}));
        self.builder.place(at.clone(), source, false);
        let args = below(&at, &["args"]);
        for Place { target, source, has_same_fields } in places {
            self.builder.place(args.iter().cloned().chain(target).collect(), source, has_same_fields);
        }
    }

    /// Ends the profile.
    pub(super) fn end(mut self) {
        if self.profile["pluginConfig"].as_array().is_some_and(Vec::is_empty)
            && let Some(members) = self.profile.as_object_mut()
        {
            members.remove("pluginConfig");
        }
        self.builder.profiles[self.index] = self.profile;
    }
}
