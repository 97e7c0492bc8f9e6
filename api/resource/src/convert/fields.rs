//! The steps from one form of an object to another, field by field, as derived code calls them.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::{Convert, ConvertError, Kept, Place, items_down, items_up};

/// `added`, on the way down: the value is kept aside, in the newest form.
pub fn drop_added(object: &mut Map<String, Value>, name: &str, kept: &mut Kept) {
    if let Some(value) = object.remove(name) {
        kept.keep_field(name, value);
    }
}

/// `added`, on the way up: what was kept comes back, unless something stands there.
pub fn restore_added(object: &mut Map<String, Value>, name: &str, was: &Kept) {
    if let (Some(value), false) = (was.field(name), object.contains_key(name)) {
        object.insert(name.to_owned(), value.clone());
    }
}

/// `renamed`, in either direction.
pub fn rename(object: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = object.remove(from) {
        object.insert(to.to_owned(), value);
    }
}

/// One `changed` of a field: where it stands, and its two translations.
#[derive(Clone, Copy, Debug)]
pub struct Translation<'a, Up, Down> {
    /// The JSON name at this step.
    pub name: &'a str,
    /// The version that brought the change.
    pub since: &'a str,
    /// From the older type to the newer one.
    pub up: Up,
    /// The way back.
    pub down: Down,
}

impl<Up, Down> Translation<'_, Up, Down> {
    /// From the older type to the newer one; a value that the older type said less exactly comes back as it was.
    pub fn up<Older: DeserializeOwned, Newer: Serialize>(
        self,
        object: &mut Map<String, Value>,
        at: &Place<'_>,
        was: &Kept,
    ) -> Result<(), ConvertError>
    where
        Up: FnOnce(Older) -> Newer,
    {
        let Some(older) = object.get_mut(self.name).filter(|value| !value.is_null()) else { return Ok(()) };
        *older = match was.exact(&self.key(), older) {
            Some(exact) => exact.clone(),
            None => translate(older, self.up).map_err(|error| at_fault(&error, self.name, at))?,
        };
        Ok(())
    }

    /// From the newer type to the older one; the value is kept where the way back does not lead to it.
    pub fn down<Newer, Older>(
        self,
        object: &mut Map<String, Value>,
        at: &Place<'_>,
        kept: &mut Kept,
    ) -> Result<(), ConvertError>
    where
        Newer: Serialize + DeserializeOwned,
        Older: Serialize + DeserializeOwned,
        Up: FnOnce(Older) -> Newer,
        Down: FnOnce(Newer) -> Older,
    {
        let key = self.key();
        let Some(value) = object.get_mut(self.name).filter(|value| !value.is_null()) else { return Ok(()) };
        let older = translate(value, self.down).map_err(|error| at_fault(&error, self.name, at))?;
        let newer = std::mem::replace(value, older.clone());
        if translate(&older, self.up).ok().as_ref() != Some(&newer) {
            kept.keep_exact(key, older, newer);
        }
        Ok(())
    }

    /// What the change is kept under.
    fn key(&self) -> String {
        format!("{}/{}", self.since, self.name)
    }
}

fn translate<From: DeserializeOwned, To: Serialize>(
    value: &Value,
    function: impl FnOnce(From) -> To,
) -> serde_json::Result<Value> {
    serde_json::to_value(function(From::deserialize(value)?))
}

fn at_fault(error: &serde_json::Error, name: &str, at: &Place<'_>) -> ConvertError {
    ConvertError::Value { place: at.child(name).pointer(), reason: error.to_string() }
}

/// A field that the newest version does not have any more.
#[derive(Clone, Debug)]
pub struct Removed<'a> {
    /// The JSON name.
    pub name: &'a str,
    /// The version that came without it.
    pub since: &'a str,
    /// Its value in objects that never had one.
    pub default: Option<Value>,
}

impl Removed<'_> {
    /// On the way up: the value is kept aside.
    pub fn up(self, object: &mut Map<String, Value>, kept: &mut Kept) {
        if let Some(value) = object.remove(self.name).filter(|value| Some(value) != self.default.as_ref()) {
            kept.keep_removed(self.key(), value);
        }
    }

    /// On the way down: what was kept comes back.
    pub fn down(self, object: &mut Map<String, Value>, kept: &mut Kept) {
        if let Some(value) = kept.take_removed(&self.key()).or(self.default) {
            object.insert(self.name.to_owned(), value);
        }
    }

    /// What the value is kept under.
    fn key(&self) -> String {
        format!("{}/{}", self.since, self.name)
    }
}

/// Brings what stands in a field up, if there is something.
pub fn field_up<T: Convert>(
    object: &mut Map<String, Value>,
    name: &str,
    from: &str,
    at: &Place<'_>,
    was: &Kept,
    kept: &mut Kept,
) -> Result<(), ConvertError> {
    field(object, name, at, (was, kept), |value, at, was, kept| T::up(value, from, at, was, kept))
}

/// Brings what stands in a field down.
pub fn field_down<T: Convert>(
    object: &mut Map<String, Value>,
    name: &str,
    to: &str,
    at: &Place<'_>,
    was: &Kept,
    kept: &mut Kept,
) -> Result<(), ConvertError> {
    field(object, name, at, (was, kept), |value, at, was, kept| T::down(value, to, at, was, kept))
}

/// Brings a list of type `map` up, whose items are known by `keys`.
pub fn map_list_up<T: Convert>(
    object: &mut Map<String, Value>,
    name: &str,
    keys: &[&str],
    from: &str,
    at: &Place<'_>,
    was: &Kept,
    kept: &mut Kept,
) -> Result<(), ConvertError> {
    field(object, name, at, (was, kept), |value, at, was, kept| items_up::<T>(value, keys, from, at, was, kept))
}

/// Brings a list of type `map` down.
pub fn map_list_down<T: Convert>(
    object: &mut Map<String, Value>,
    name: &str,
    keys: &[&str],
    to: &str,
    at: &Place<'_>,
    was: &Kept,
    kept: &mut Kept,
) -> Result<(), ConvertError> {
    field(object, name, at, (was, kept), |value, at, was, kept| items_down::<T>(value, keys, to, at, was, kept))
}

/// Converts what stands in a field, with what was kept inside of it.
fn field(
    object: &mut Map<String, Value>,
    name: &str,
    at: &Place<'_>,
    (was, kept): (&Kept, &mut Kept),
    convert: impl FnOnce(&mut Value, &Place<'_>, &Kept, &mut Kept) -> Result<(), ConvertError>,
) -> Result<(), ConvertError> {
    let Some(value) = object.get_mut(name) else { return Ok(()) };
    let mut inside = was.inside(name).carried();
    convert(value, &at.child(name), was.inside(name), &mut inside)?;
    kept.keep_inside(name, inside);
    Ok(())
}
