//! Objects and their fields, in the words that kubectl uses for them.

use std::fmt;

use anyhow::{Result, bail};
use k8s_openapi::api::apps::v1::ReplicaSet;
use koord_resource::controller::ResourceKind;
use kube::Client;
use serde::Deserialize;
use serde_json::Value;

/// An object, written `KIND NAME` or `KIND NAMESPACE/NAME`; without a namespace it is the default one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Object {
    word: String,
    kind: ResourceKind,
    namespace: String,
    name: String,
}

const DEFAULT: &str = "default";

impl Object {
    /// The object of this kind; the namespace counts where the kind has some.
    pub fn new(word: &str, namespace: &str, name: &str) -> Result<Self> {
        let kind = kind(word)?;
        let namespace = match (kind.namespaced, namespace) {
            (false, _) => "",
            (true, "") => DEFAULT,
            (true, named) => named,
        };
        Ok(Self { word: word.to_owned(), kind, namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// What kubectl calls its kind.
    pub fn kind_word(&self) -> &str {
        &self.word
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its namespace; empty for an object without one.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Where the API server has it.
    pub fn path(&self) -> String {
        self.kind.url_path(&self.namespace, Some(&self.name))
    }

    /// Where the API server has all of its kind and namespace.
    pub fn siblings_path(&self) -> String {
        self.kind.url_path(&self.namespace, None)
    }

    /// The flag that names its namespace, with a space behind it; nothing where kubectl needs none.
    pub fn namespace_flag(&self) -> String {
        match self.namespace.as_str() {
            "" | DEFAULT => String::new(),
            namespace => format!("-n {namespace} "),
        }
    }

    /// `KIND NAME`, as arguments of kubectl.
    pub fn arguments(&self) -> String {
        format!("{} {}", self.word, self.name)
    }

    /// As kubectl names it in its output.
    pub fn done(&self, what: &str) -> String {
        let group = if self.kind.group.is_empty() { String::new() } else { format!(".{}", self.kind.group) };
        format!("{}{group}/{} {what}", self.word, self.name)
    }

    /// Reads it; none where it is not.
    pub async fn get(&self, client: &Client) -> Result<Option<Value>> {
        match client.request(http::Request::get(self.path()).body(Vec::new())?).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            result => Ok(Some(result?)),
        }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.word, self.name)
    }
}

impl TryFrom<String> for Object {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<Self> {
        let Some((word, name)) = text.split_once(' ') else { bail!("{text:?} is not KIND NAME") };
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        Self::new(word, namespace, name)
    }
}

fn kind(word: &str) -> Result<ResourceKind> {
    let ours = koord_types::KINDS.iter().filter_map(|versions| versions.first()).map(|declared| &declared.info);
    Ok(match word {
        "node" => ResourceKind::NODE,
        "pod" => ResourceKind::POD,
        "configmap" => ResourceKind::CONFIG_MAP,
        "event" => ResourceKind::EVENT,
        "replicaset" => ResourceKind::typed::<ReplicaSet>(),
        _ => match ours.into_iter().find(|info| info.singular == word) {
            Some(info) => ResourceKind::of(info),
            None => bail!("no scenario knows the kind {word:?}"),
        },
    })
}

/// A field of an object, in the form that kubectl's jsonpath reads: `.spec.containers[0].name`, with `\.` for a dot within a name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Field {
    text: String,
    names: Vec<String>,
}

impl TryFrom<String> for Field {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<Self> {
        let Some(inner) = text.strip_prefix('.') else { bail!("the field {text:?} does not begin with a dot") };
        let (mut names, mut name) = (Vec::new(), String::new());
        let mut letters = inner.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '.' | '[' => names.push(std::mem::take(&mut name)),
                ']' => {}
                '\\' => name.extend(letters.next()),
                letter => name.push(letter),
            }
        }
        names.push(name);
        Ok(Self { text, names })
    }
}

impl Field {
    /// The value, as kubectl prints it; none where there is none.
    pub fn of(&self, object: &Value) -> Option<String> {
        let value = self.names.iter().try_fold(object, |value, name| match value {
            Value::Array(items) => items.get(name.parse::<usize>().ok()?),
            value => value.get(name),
        })?;
        match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            value => Some(value.to_string()),
        }
    }

    /// The last name, which says enough in a sentence.
    pub fn last(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A field of an object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    pub of: Object,
    pub field: Field,
}

impl Place {
    /// What stands there; none where nothing does.
    pub async fn read(&self, client: &Client) -> Result<Option<String>> {
        Ok(self.of.get(client).await?.and_then(|object| self.field.of(&object)))
    }

    /// The command that prints what stands there.
    pub fn command(&self) -> String {
        let (namespace, object) = (self.of.namespace_flag(), self.of.arguments());
        format!("kubectl {namespace}get {object} -o jsonpath='{{{}}}{{\"\\n\"}}'", self.field)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(text: &str) -> Object {
        Object::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn objects_are_named_as_for_kubectl() {
        for (text, path, flag) in [
            ("node hollow-0", "/api/v1/nodes/hollow-0", ""),
            ("pod web", "/api/v1/namespaces/default/pods/web", ""),
            ("configmap a/b", "/api/v1/namespaces/a/configmaps/b", "-n a "),
            ("nodeslo hollow-0", "/apis/slo.koordinator.sh/v1alpha1/nodeslos/hollow-0", ""),
        ] {
            assert_eq!((object(text).path().as_str(), object(text).namespace_flag().as_str()), (path, flag));
        }
        assert_eq!(object("nodeslo hollow-0").done("patched"), "nodeslo.slo.koordinator.sh/hollow-0 patched");
        assert!(Object::try_from("rocket one".to_owned()).unwrap_err().to_string().contains("\"rocket\""));
    }

    #[test]
    fn fields_are_found_as_jsonpath_finds_them() {
        let object = json!({"a": {"b.c/d": ["x", {"e": 1}], "none": null}});
        let of = |text: &str| Field::try_from(text.to_owned()).unwrap().of(&object);
        assert_eq!(of(r".a.b\.c/d[0]").as_deref(), Some("x"));
        assert_eq!(of(r".a.b\.c/d[1]").as_deref(), Some(r#"{"e":1}"#));
        assert_eq!(of(r".a.b\.c/d[1].e").as_deref(), Some("1"));
        assert_eq!([of(".a.none"), of(".z"), of(r".a.b\.c/d[7]")], [None, None, None]);
    }
}
