//! Fields that stood in another object of their struct in older versions.

use serde_json::{Map, Value, json};

use super::{Convert, ConvertError, Kept, Place, Way};

/// Where a field stands in one form of a struct: in the struct's own object, or in one below it.
#[derive(Clone, Copy, Debug)]
pub struct Spot<'a> {
    /// The field with the object that holds it; none where the struct's own object does.
    pub parent: Option<&'a str>,
    /// Whether the parent is a field of the other form too, which stays there when nothing is left in it.
    pub stays: bool,
    /// The JSON name.
    pub name: &'a str,
}

impl Spot<'_> {
    fn take(&self, object: &mut Map<String, Value>, key: &str, kept: &mut Kept) -> Option<Value> {
        let Some(parent) = self.parent else { return object.remove(self.name) };
        let inside = object.get_mut(parent)?.as_object_mut()?;
        let value = inside.remove(self.name)?;
        let was_made = kept.take_made(key);
        if inside.is_empty() && (was_made || !self.stays) {
            object.remove(parent);
        }
        Some(value)
    }

    fn put(&self, object: &mut Map<String, Value>, value: Value, key: &str, kept: &mut Kept) {
        let Some(parent) = self.parent else {
            object.insert(self.name.to_owned(), value);
            return;
        };
        let holder = object.entry(parent).or_insert(Value::Null);
        if !holder.is_object() {
            *holder = json!({});
            if self.stays {
                kept.keep_made(key);
            }
        }
        holder[self.name] = value;
    }
}

/// A field that stood elsewhere in versions before `since`.
///
/// It is taken out before the other fields are converted, and put in after them, so that its places may be called what
/// other fields are called in the other form.
#[derive(Clone, Copy, Debug)]
pub struct Moved<'a> {
    /// The version that brought the change.
    pub since: &'a str,
    /// Where it stood.
    pub older: Spot<'a>,
    /// Where it stands.
    pub newest: Spot<'a>,
}

impl Moved<'_> {
    /// On the way up: takes the value from where it stood, in the newest form. `T` is the field's type, or that of the
    /// parent where it stands in one now.
    pub fn take_up<T: Convert>(
        &self,
        object: &mut Map<String, Value>,
        from: &str,
        at: &Place<'_>,
        was: &Kept,
        kept: &mut Kept,
    ) -> Result<Option<Value>, ConvertError> {
        let value = self.older.take(object, &self.key(), kept);
        self.converted::<T>(Way::UpFrom(from), value, at, was, kept)
    }

    /// On the way up: puts the value where it stands now.
    pub fn put_up(&self, object: &mut Map<String, Value>, value: Option<Value>, kept: &mut Kept) {
        if let Some(value) = value {
            self.newest.put(object, value, &self.key(), kept);
        }
    }

    /// On the way down: takes the value from where it stands, in the form of the older version.
    pub fn take_down<T: Convert>(
        &self,
        object: &mut Map<String, Value>,
        to: &str,
        at: &Place<'_>,
        was: &Kept,
        kept: &mut Kept,
    ) -> Result<Option<Value>, ConvertError> {
        let value = self.newest.take(object, &self.key(), kept);
        self.converted::<T>(Way::DownTo(to), value, at, was, kept)
    }

    /// On the way down: puts the value where it stood.
    pub fn put_down(&self, object: &mut Map<String, Value>, value: Option<Value>, kept: &mut Kept) {
        if let Some(value) = value {
            self.older.put(object, value, &self.key(), kept);
        }
    }

    fn converted<T: Convert>(
        &self,
        way: Way<'_>,
        value: Option<Value>,
        at: &Place<'_>,
        was: &Kept,
        kept: &mut Kept,
    ) -> Result<Option<Value>, ConvertError> {
        let (key, name) = (self.key(), self.newest.name);
        let was = was.inside(&key);
        if value.is_none() && was.is_empty() {
            return Ok(None);
        }
        let mut inside = was.carried();
        let value = match (self.newest.parent, value) {
            // What is said of the field stands in its parent's type, which sees an object with this field alone.
            (Some(parent), value) => {
                let mut alone = json!({});
                if let (Some(name), Some(value)) = (way.name_before::<T>(name), value) {
                    alone[name] = value;
                }
                way.convert::<T>(&mut alone, &at.child(parent), was, &mut inside)?;
                let object = alone.as_object_mut();
                object.and_then(|object| object.remove(way.name_after::<T>(name)?))
            }
            (None, Some(mut value)) => {
                way.convert::<T>(&mut value, &at.child(name), was, &mut inside)?;
                Some(value)
            }
            (None, None) => None,
        };
        kept.keep_inside(&key, inside);
        Ok(value)
    }

    /// What is kept of it is kept under this.
    fn key(&self) -> String {
        format!("{}/{}", self.since, self.newest.name)
    }
}
