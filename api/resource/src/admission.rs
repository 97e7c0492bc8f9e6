//! What an admission handler is: a pure function of a request and a snapshot, and its entry in a webhook configuration.

mod derived;
mod entry;
mod patch;
mod steps;

use std::{borrow::Cow, collections::BTreeMap, fmt, marker::PhantomData};

pub use derived::{mutate, validate, validate_with};
pub use entry::{Client, Declaration, FailurePolicy, Handler, Selector, SideEffects, WebhookEntry, WebhookKind};
pub use patch::Patch;
use serde::{Deserialize, Deserializer, Serialize, de, de::DeserializeOwned};
use serde_json::value::RawValue;
pub use steps::{Steps, Stopwatch};

/// What is being done to the object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// A new object.
    Create,
    /// A change.
    Update,
    /// A removal.
    Delete,
    /// A connection, such as exec.
    Connect,
    /// None or an unknown one: handlers let such requests pass.
    #[default]
    Other,
}

impl Operation {
    /// The operation of an AdmissionReview's text.
    pub fn of(text: &str) -> Self {
        match text {
            "CREATE" => Operation::Create,
            "UPDATE" => Operation::Update,
            "DELETE" => Operation::Delete,
            "CONNECT" => Operation::Connect,
            _ => Operation::Other,
        }
    }

    /// The text of an AdmissionReview; empty for none of the known ones.
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
            Operation::Other => "",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Operation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer).map(|text| Operation::of(&text))
    }
}

/// Reads a text without copying it where it has no escapes; `null` is the empty text, as Go reads it.
///
/// For `#[serde(borrow, deserialize_with = "text")]`, which plain `Cow` needs to borrow from behind a visitor.
pub fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'de, str>, D::Error> {
    struct Visitor;
    impl<'de> de::Visitor<'de> for Visitor {
        type Value = Cow<'de, str>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
            Ok(Cow::Borrowed(text))
        }

        fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
            Ok(Cow::Owned(text.to_owned()))
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Cow::Borrowed(""))
        }
    }
    deserializer.deserialize_any(Visitor)
}

/// Reads a value of which `null` is the default, as Go reads it.
pub fn or_default<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads a list of which `null` is the empty one, and in which `null` is the default item, as Go reads them.
pub fn items_or_default<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct Visitor<T>(PhantomData<T>);
    impl<'de, T: Default + Deserialize<'de>> de::Visitor<'de> for Visitor<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a sequence")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }

        fn visit_seq<A: de::SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
            let mut items = Vec::new();
            while let Some(item) = access.next_element::<Option<T>>()? {
                items.push(item.unwrap_or_default());
            }
            Ok(items)
        }
    }
    deserializer.deserialize_any(Visitor(PhantomData))
}

/// Group, version and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GroupVersionKind<'a> {
    /// API group; empty for core.
    #[serde(borrow, deserialize_with = "text")]
    pub group: Cow<'a, str>,
    /// API version.
    #[serde(borrow, deserialize_with = "text")]
    pub version: Cow<'a, str>,
    /// Kind.
    #[serde(borrow, deserialize_with = "text")]
    pub kind: Cow<'a, str>,
}

/// Group, version and plural.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GroupVersionResource<'a> {
    /// API group; empty for core.
    #[serde(borrow, deserialize_with = "text")]
    pub group: Cow<'a, str>,
    /// API version.
    #[serde(borrow, deserialize_with = "text")]
    pub version: Cow<'a, str>,
    /// Plural.
    #[serde(borrow, deserialize_with = "text")]
    pub resource: Cow<'a, str>,
}

/// The user who makes a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct UserInfo<'a> {
    /// User name.
    #[serde(borrow, deserialize_with = "text")]
    pub username: Cow<'a, str>,
    /// Unique id of the user.
    #[serde(borrow, deserialize_with = "text")]
    pub uid: Cow<'a, str>,
    /// Groups of the user.
    #[serde(borrow)]
    pub groups: Vec<Cow<'a, str>>,
}

/// One admission request as it came over the wire; its objects are not decoded yet.
///
/// What is absent or `null` is empty, as Go reads it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Request<'a> {
    /// Echoed in the answer.
    #[serde(borrow, deserialize_with = "text")]
    pub uid: Cow<'a, str>,
    /// Kind of the object.
    #[serde(borrow, deserialize_with = "or_default")]
    pub kind: GroupVersionKind<'a>,
    /// Resource of the request.
    #[serde(borrow, deserialize_with = "or_default")]
    pub resource: GroupVersionResource<'a>,
    /// Subresource; empty for the object itself.
    #[serde(borrow, deserialize_with = "text")]
    pub sub_resource: Cow<'a, str>,
    /// Name; may be empty on create.
    #[serde(borrow, deserialize_with = "text")]
    pub name: Cow<'a, str>,
    /// Namespace; empty for cluster scope.
    #[serde(borrow, deserialize_with = "text")]
    pub namespace: Cow<'a, str>,
    /// What is being done.
    pub operation: Operation,
    /// The user, not decoded yet: few handlers need it. See [`Request::user`].
    #[serde(borrow)]
    pub user_info: Option<&'a RawValue>,
    /// The object as it would become; absent on delete.
    #[serde(borrow)]
    pub object: Option<&'a RawValue>,
    /// The object as it is; absent on create.
    #[serde(borrow)]
    pub old_object: Option<&'a RawValue>,
    /// Whether nothing will be stored.
    #[serde(deserialize_with = "or_default")]
    pub dry_run: bool,
    /// Options of the operation, not decoded yet. See [`Request::field_manager`].
    #[serde(borrow)]
    pub options: Option<&'a RawValue>,
}

impl<'a> Request<'a> {
    /// The field manager of the request; empty where it names none.
    pub fn field_manager(&self) -> Cow<'a, str> {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Options<'a> {
            #[serde(borrow, deserialize_with = "text")]
            field_manager: Cow<'a, str>,
        }
        let options = self.options.and_then(|raw| serde_json::from_str::<Options<'a>>(raw.get()).ok());
        options.unwrap_or_default().field_manager
    }

    /// The user who makes the request.
    pub fn user(&self) -> Result<UserInfo<'a>, Denial> {
        let Some(raw) = self.user_info else { return Ok(UserInfo::default()) };
        serde_json::from_str(raw.get()).map_err(|error| Denial::bad_request(format!("request.userInfo: {error}")))
    }
}

/// A request whose objects are decoded.
#[derive(Clone, Debug)]
pub struct Review<'a, T> {
    /// Everything but the objects.
    pub request: &'a Request<'a>,
    /// The object as it would become.
    pub object: Option<T>,
    /// The object as it is.
    pub old_object: Option<T>,
}

impl<'a, T: DeserializeOwned> Review<'a, T> {
    /// Decodes the objects of a request.
    pub fn decode(request: &'a Request<'a>) -> Result<Self, Denial> {
        let decode = |raw: Option<&RawValue>| raw.map(|raw| serde_json::from_str(raw.get())).transpose();
        match (decode(request.object), decode(request.old_object)) {
            (Ok(object), Ok(old_object)) => Ok(Review { request, object, old_object }),
            (Err(error), _) | (_, Err(error)) => Err(Denial::bad_request(error.to_string())),
        }
    }
}

/// What a handler decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Why the request is refused; none admits it.
    pub denial: Option<Denial>,
    /// Changes of the object; empty leaves it as it is.
    pub patch: Patch,
    /// Why the request would be refused, were the rules that it breaks enforced. It is admitted all the same: whoever answers counts this, and
    /// warns of each mistake.
    pub unenforced: Option<Denial>,
    /// What the user should know although the request is admitted.
    pub warnings: Vec<String>,
    /// Annotations of the audit event.
    pub audit_annotations: BTreeMap<String, String>,
    /// The refusal may soon be none: what it misses could be on its way to the caches. Whoever answers may ask again
    /// for a moment before it answers the user.
    pub provisional: bool,
    /// How long each part of the decision took; empty where the decision has no parts.
    pub steps: Steps,
}

impl Verdict {
    /// Admits the request as it is.
    pub fn allow() -> Self {
        Self::default()
    }

    /// Refuses the request.
    pub fn deny(denial: Denial) -> Self {
        Self { denial: Some(denial), ..Self::default() }
    }

    /// Refuses the request by what the caches show, which may not be all yet.
    pub fn deny_provisionally(denial: Denial) -> Self {
        Self { provisional: true, ..Self::deny(denial) }
    }

    /// Admits the request with changes.
    pub fn patched(patch: Patch) -> Self {
        Self { patch, ..Self::default() }
    }

    /// Adds something the user should know.
    #[must_use]
    pub fn warn(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }
}

/// Why a request is refused; becomes the `status` of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// HTTP code that the user's client sees.
    pub code: u16,
    /// Machine-readable reason, such as `Forbidden`; empty leaves it out.
    pub reason: Cow<'static, str>,
    /// What the user reads.
    pub message: String,
    /// Single fields to blame.
    pub causes: Vec<crate::field::FieldError>,
    /// Which field to fix and how, for denials whose message is another program's, word for word, and says neither. It is not sent with
    /// the answer. Programs that explain a refusal show it.
    pub advice: Option<&'static Advice>,
}

/// How to fix a denied request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advice {
    /// What breaks the rule.
    pub field: Place,
    /// What to do.
    pub remedy: &'static str,
}

/// A field of an object that advice points at. It is shown as its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The field of this path, such as `spec.min`.
    Field(&'static str),
    /// The label of this name.
    Label(&'static str),
    /// The annotation of this name.
    Annotation(&'static str),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(path) => f.write_str(path),
            Self::Label(name) => write!(f, "metadata.labels[{name}]"),
            Self::Annotation(name) => write!(f, "metadata.annotations[{name}]"),
        }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.remedy)
    }
}

impl Denial {
    /// Adds how to fix it.
    #[must_use]
    pub fn advise(mut self, advice: &'static Advice) -> Self {
        self.advice = Some(advice);
        self
    }

    fn new(code: u16, reason: &'static str, message: String, causes: Vec<crate::field::FieldError>) -> Self {
        Self { code, reason: Cow::Borrowed(reason), message, causes, advice: None }
    }

    /// 400: the request cannot be understood, or breaks a rule of a handler that answers all refusals so.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "", message.into(), Vec::new())
    }

    /// 403 with reason `Forbidden`.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, "Forbidden", message.into(), Vec::new())
    }

    /// 422 with reason `Invalid` and one cause per mistake.
    pub fn invalid(errors: &crate::field::Errors) -> Self {
        Self::new(422, "Invalid", errors.to_string(), errors.iter().cloned().collect())
    }

    /// 500: our fault, not the user's.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "", message.into(), Vec::new())
    }
}

impl From<serde_json::Error> for Denial {
    /// A value of ours that cannot be written as JSON is our fault.
    fn from(error: serde_json::Error) -> Self {
        Denial::internal(error.to_string())
    }
}

impl From<Result<Patch, Denial>> for Verdict {
    fn from(outcome: Result<Patch, Denial>) -> Self {
        match outcome {
            Ok(patch) => Verdict::patched(patch),
            Err(denial) => Verdict::deny(denial),
        }
    }
}
