//! Versions of one kind, and the way between them.
//!
//! A type is declared once, as its newest version. `added`, `renamed`, `changed` and `moved` on its fields and `removed` on
//! the type say how older versions looked, and `#[derive(Convert)]` makes of them the way up to the newest version and down
//! to an older one. What the other version cannot hold is kept in an annotation, so that a client of one version that
//! writes the object back takes nothing away from those of the other.

mod fields;
mod kept;
mod moved;

pub use fields::{
    Removed, Translation, drop_added, field_down, field_up, map_list_down, map_list_up, rename, restore_added,
};
pub(crate) use kept::fingerprint;
pub use kept::{Kept, items_down, items_up};
pub use moved::{Moved, Spot};
use serde_json::{Value, json};

pub use crate::version::version_rank;
use crate::{
    Resource,
    declare::is_same,
    walk::{list_types, map_types, plain_types},
};

/// The path on which a webhook server converts objects.
pub const CONVERT_PATH: &str = "/convert";
/// The versions of ConversionReview that [`answer`] understands, preferred first.
pub const CONVERSION_REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// A type that looked otherwise in older versions of its kind; `#[derive(Convert)]` implements it.
#[diagnostic::on_unimplemented(
    message = "no way between versions is known for `{Self}`",
    label = "not a type that `Convert` is implemented for",
    note = "a struct or an enum of yours derives it: `#[derive(Convert)]`; one that is the same in all versions too",
    note = "of a type of another crate, the field says `#[koord(schemars)]` or `#[koord(schemaless, preserve_unknown_fields)]`"
)]
pub trait Convert {
    /// Brings JSON of version `from` into the newest form, with what was kept beside it; what has no room in the newest
    /// form is kept beside that.
    fn up(value: &mut Value, from: &str, at: &Place<'_>, was: &Kept, kept: &mut Kept) -> Result<(), ConvertError> {
        let _ = (value, from, at, was, kept);
        Ok(())
    }

    /// Brings JSON of the newest form into version `to`, with what was kept beside it; what has no room there is kept.
    fn down(value: &mut Value, to: &str, at: &Place<'_>, was: &Kept, kept: &mut Kept) -> Result<(), ConvertError> {
        let _ = (value, to, at, was, kept);
        Ok(())
    }

    /// The versions that `since` and `until` name on the type and its fields.
    const NAMED: &'static [&'static str] = &[];
    /// Those of the types of its fields.
    const NAMED_INSIDE: &'static [&'static [&'static str]] = &[];
    /// Those of the types of their fields. Types may contain each other, so that this is as far as constants look.
    const NAMED_DEEPER: &'static [&'static [&'static [&'static str]]] = &[];

    /// What a version calls the field `name` of the newest form; none where it has no such field.
    fn name_in<'n>(version: &str, name: &'n str) -> Option<&'n str> {
        let _ = version;
        Some(name)
    }
}

/// Whether all of these versions are the newest or one of the older ones.
const fn are_known(named: &[&str], newest: &str, older: &[&str]) -> bool {
    let mut at = 0;
    while at < named.len() {
        if !is_same(named[at], newest) && !has(older, named[at]) {
            return false;
        }
        at += 1;
    }
    true
}

/// The same of several lists.
const fn are_all_known(named: &[&[&str]], newest: &str, older: &[&str]) -> bool {
    let mut at = 0;
    while at < named.len() {
        if !are_known(named[at], newest, older) {
            return false;
        }
        at += 1;
    }
    true
}

/// Whether every version that a kind names is one that it has.
const fn names_its_own<T: Resource + Convert>(older: &[&str]) -> bool {
    let newest = T::INFO.version;
    if !are_known(T::NAMED, newest, older) || !are_all_known(T::NAMED_INSIDE, newest, older) {
        return false;
    }
    let mut at = 0;
    while at < T::NAMED_DEEPER.len() {
        if !are_all_known(T::NAMED_DEEPER[at], newest, older) {
            return false;
        }
        at += 1;
    }
    true
}

const fn has(texts: &[&str], text: &str) -> bool {
    let mut at = 0;
    while at < texts.len() {
        if is_same(texts[at], text) {
            return true;
        }
        at += 1;
    }
    false
}

/// From an older form to the newest, or back.
#[derive(Clone, Copy)]
enum Way<'v> {
    UpFrom(&'v str),
    DownTo(&'v str),
}

impl Way<'_> {
    fn convert<T: Convert>(
        self,
        value: &mut Value,
        at: &Place<'_>,
        was: &Kept,
        kept: &mut Kept,
    ) -> Result<(), ConvertError> {
        match self {
            Way::UpFrom(version) => T::up(value, version, at, was, kept),
            Way::DownTo(version) => T::down(value, version, at, was, kept),
        }
    }

    /// What a field of the newest form is called where the way begins.
    fn name_before<T: Convert>(self, name: &str) -> Option<&str> {
        match self {
            Way::UpFrom(version) => T::name_in(version, name),
            Way::DownTo(_) => Some(name),
        }
    }

    /// What it is called where the way ends.
    fn name_after<T: Convert>(self, name: &str) -> Option<&str> {
        match self {
            Way::UpFrom(_) => Some(name),
            Way::DownTo(version) => T::name_in(version, name),
        }
    }
}

/// A place in the newest form of an object.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place<'a> {
    parent: Option<(&'a Place<'a>, &'a str)>,
}

impl Place<'_> {
    /// A field, an entry or an item of what stands here.
    pub fn child<'b>(&'b self, name: &'b str) -> Place<'b> {
        Place { parent: Some((self, name)) }
    }

    /// As a JSON pointer.
    fn pointer(&self) -> String {
        self.parent.map_or_else(String::new, |(parent, name)| {
            format!("{}/{}", parent.pointer(), name.replace('~', "~0").replace('/', "~1"))
        })
    }
}

/// Why an object cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// A value is not of the type that its version declares.
    #[error("{place}: {reason}")]
    Value {
        /// JSON pointer.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// The request names a kind or version that the table does not have.
    #[error("no conversion of {kind} from {from} to {to} is known")]
    Unknown {
        /// Kind of the object.
        kind: String,
        /// Its apiVersion.
        from: String,
        /// The wanted apiVersion.
        to: String,
    },
}

// === types of others ===

macro_rules! same_in_all_versions {
    ($($type:ty),* $(,)?) => {$(
        #[diagnostic::do_not_recommend]
        impl Convert for $type {}
    )*};
}

plain_types!(same_in_all_versions);
same_in_all_versions!(k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition);

macro_rules! item_by_item {
    ($($type:ty $(, $size:ident)?;)*) => {$(
        impl<T: Convert $(, const $size: usize)?> Convert for $type {
            const NAMED: &'static [&'static str] = T::NAMED;
            const NAMED_INSIDE: &'static [&'static [&'static str]] = T::NAMED_INSIDE;
            const NAMED_DEEPER: &'static [&'static [&'static [&'static str]]] = T::NAMED_DEEPER;
            fn up(value: &mut Value, from: &str, at: &Place<'_>, was: &Kept, kept: &mut Kept) -> Result<(), ConvertError> {
                items_up::<T>(value, &[], from, at, was, kept)
            }
            fn down(value: &mut Value, to: &str, at: &Place<'_>, was: &Kept, kept: &mut Kept) -> Result<(), ConvertError> {
                items_down::<T>(value, &[], to, at, was, kept)
            }
        }
    )*};
}

list_types!(item_by_item);

macro_rules! entry_by_entry {
    ($($type:ty $(, $state:ident)?;)*) => {$(
        impl<K, V: Convert $(, $state)?> Convert for $type {
            const NAMED: &'static [&'static str] = V::NAMED;
            const NAMED_INSIDE: &'static [&'static [&'static str]] = V::NAMED_INSIDE;
            const NAMED_DEEPER: &'static [&'static [&'static [&'static str]]] = V::NAMED_DEEPER;
            fn up(value: &mut Value, from: &str, at: &Place<'_>, was: &Kept, kept: &mut Kept) -> Result<(), ConvertError> {
                entries::<V>(Way::UpFrom(from), value, at, was, kept)
            }
            fn down(value: &mut Value, to: &str, at: &Place<'_>, was: &Kept, kept: &mut Kept) -> Result<(), ConvertError> {
                entries::<V>(Way::DownTo(to), value, at, was, kept)
            }
        }
    )*};
}

map_types!(entry_by_entry);

fn entries<T: Convert>(
    way: Way<'_>,
    map: &mut Value,
    at: &Place<'_>,
    was: &Kept,
    kept: &mut Kept,
) -> Result<(), ConvertError> {
    for (name, value) in map.as_object_mut().into_iter().flatten() {
        let mut inside = was.inside(name).carried();
        way.convert::<T>(value, &at.child(name), was.inside(name), &mut inside)?;
        kept.keep_inside(name, inside);
    }
    Ok(())
}

macro_rules! transparent {
    ($($type:ty),*) => {$(
        impl<T: Convert> Convert for $type {
            const NAMED: &'static [&'static str] = T::NAMED;
            const NAMED_INSIDE: &'static [&'static [&'static str]] = T::NAMED_INSIDE;
            const NAMED_DEEPER: &'static [&'static [&'static [&'static str]]] = T::NAMED_DEEPER;
            fn up(value: &mut Value, from: &str, at: &Place<'_>, was: &Kept, kept: &mut Kept) -> Result<(), ConvertError> {
                T::up(value, from, at, was, kept)
            }
            fn down(value: &mut Value, to: &str, at: &Place<'_>, was: &Kept, kept: &mut Kept) -> Result<(), ConvertError> {
                T::down(value, to, at, was, kept)
            }
            fn name_in<'n>(version: &str, name: &'n str) -> Option<&'n str> {
                T::name_in(version, name)
            }
        }
    )*};
}

transparent!(Option<T>, Box<T>, std::rc::Rc<T>, std::sync::Arc<T>);

// === whole objects ===

/// One of the two directions.
type Direction = fn(&mut Value, &str, &Place<'_>, &Kept, &mut Kept) -> Result<(), ConvertError>;

/// The way between the versions of one kind, for a constant table.
#[derive(Clone, Copy)]
pub struct Conversion {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    newest: &'static str,
    older: &'static [&'static str],
    up: Direction,
    down: Direction,
}

impl Conversion {
    /// Between the newest version, which is the type's own, and older ones.
    ///
    /// # Panics
    ///
    /// While compiling, as a table of conversions is a constant, where a `since` or `until` names a version that is none of these.
    pub const fn of<T: Resource + Convert>(older: &'static [&'static str]) -> Self {
        assert!(
            names_its_own::<T>(older),
            "a `since` or `until` in the kind, or in the types of its fields, names a version that is neither the kind's own nor one of these older ones"
        );
        Conversion {
            group: T::INFO.group,
            kind: T::INFO.kind,
            plural: T::INFO.plural,
            newest: T::INFO.version,
            older,
            up: T::up,
            down: T::down,
        }
    }

    /// The name of the CustomResourceDefinition whose objects are converted.
    pub fn definition_name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    fn has(&self, version: &str) -> bool {
        self.newest == version || self.older.contains(&version)
    }

    /// Converts an object to a version of the same group.
    pub fn convert(&self, object: &mut Value, to: &str) -> Result<(), ConvertError> {
        let api_version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
        let from = api_version.strip_prefix(self.group).and_then(|rest| rest.strip_prefix('/'));
        let Some(from) = from.filter(|from| self.has(from) && self.has(to)) else {
            let kind = self.kind.to_owned();
            return Err(ConvertError::Unknown { kind, from: api_version, to: format!("{}/{to}", self.group) });
        };
        if from != to {
            let mut kept = self.take_kept(object);
            for (direction, version) in [(self.up, from), (self.down, to)] {
                if version != self.newest {
                    let was = kept;
                    kept = was.carried();
                    direction(object, version, &Place::default(), &was, &mut kept)?;
                }
            }
            self.keep(object, &kept);
            object["apiVersion"] = json!(format!("{}/{to}", self.group));
        }
        Ok(())
    }

    /// The annotation that holds what the version of the object has no room for.
    fn annotation(&self) -> String {
        format!("{}/unconverted", self.group)
    }

    fn keep(&self, object: &mut Value, kept: &Kept) {
        if kept.is_empty() {
            return;
        }
        let text = json!(kept).to_string();
        if let Some(metadata) = member(object, "metadata")
            && let Some(annotations) = member(metadata, "annotations").and_then(Value::as_object_mut)
        {
            annotations.insert(self.annotation(), Value::String(text));
        }
    }

    /// What was kept; the annotation goes.
    fn take_kept(&self, object: &mut Value) -> Kept {
        let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
            return Kept::default();
        };
        let Some(kept) = annotations.remove(&self.annotation()) else { return Kept::default() };
        if annotations.is_empty()
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            metadata.remove("annotations");
        }
        // A text that a user has damaged restores nothing.
        kept.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }
}

/// A member that is an object, made where it is absent.
fn member<'v>(object: &'v mut Value, name: &str) -> Option<&'v mut Value> {
    let member = object.as_object_mut()?.entry(name).or_insert_with(|| json!({}));
    if member.is_null() {
        *member = json!({});
    }
    Some(member)
}

/// Answers the text of a ConversionReview; none for a text that is no review.
pub fn answer_text(body: &[u8], table: &[Conversion]) -> Option<Vec<u8>> {
    let review: Value = serde_json::from_slice(body).ok()?;
    review["request"].is_object().then(|| answer(&review, table).to_string().into_bytes())
}

/// Answers a ConversionReview: all of its objects are converted, or none.
pub fn answer(review: &Value, table: &[Conversion]) -> Value {
    let request = &review["request"];
    let wanted = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let objects = request["objects"].as_array().map(Vec::as_slice).unwrap_or_default();
    let converted: Result<Vec<Value>, ConvertError> =
        objects.iter().map(|object| convert_one(object, wanted, table)).collect();
    let mut response = json!({"uid": request["uid"]});
    match converted {
        Ok(objects) => {
            response["convertedObjects"] = Value::Array(objects);
            response["result"] = json!({"status": "Success"});
        }
        Err(error) => response["result"] = json!({"status": "Failure", "message": error.to_string()}),
    }
    json!({"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response})
}

fn convert_one(object: &Value, wanted: &str, table: &[Conversion]) -> Result<Value, ConvertError> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let (group, version) = wanted.rsplit_once('/').unwrap_or(("", wanted));
    let known = table.iter().find(|conversion| conversion.kind == kind && conversion.group == group);
    let Some(conversion) = known else {
        let from = object["apiVersion"].as_str().unwrap_or_default().to_owned();
        return Err(ConvertError::Unknown { kind: kind.to_owned(), from, to: wanted.to_owned() });
    };
    let mut object = object.clone();
    conversion.convert(&mut object, version)?;
    Ok(object)
}
