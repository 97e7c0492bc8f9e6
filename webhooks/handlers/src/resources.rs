//! Requests and limits: read in place, translated, and written back.

use std::{borrow::Cow, fmt};

use koord_profile::Text;
use koord_resource::{
    Quantity, ResourceList,
    admission::{Patch, or_default},
    field::Path,
};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::value::RawValue;

/// `resources` of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Resources<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    pub(crate) requests: Amounts<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    pub(crate) limits: Amounts<'a>,
}

/// Amounts of resources by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Amounts<'a> {
    entries: Vec<Amount<'a>>,
    changed: bool,
}

/// One amount.
#[derive(Clone, Debug)]
pub(crate) struct Amount<'a> {
    name: Cow<'a, str>,
    quantity: Quantity,
    /// The text in the object, while the amount is untouched: what nobody changes keeps its form.
    written: Option<&'a RawValue>,
    /// Whether the object has `null` for it, which Go keeps without a format.
    is_null: bool,
}

impl Amount<'_> {
    /// Whether a text, or `null` where there is none, says this amount in the form that Go keeps of it.
    pub(crate) fn has_form(&self, text: Option<&str>) -> bool {
        match text {
            None => self.is_null,
            Some(text) => !self.is_null && text.parse::<Quantity>().is_ok_and(|said| self.quantity.has_form_of(&said)),
        }
    }

    fn has_form_of(&self, other: &Amount<'_>) -> bool {
        self.is_null == other.is_null && self.quantity.has_form_of(&other.quantity)
    }

    fn is_canonical(&self) -> bool {
        let text = self.written.map(RawValue::get).and_then(|raw| raw.strip_prefix('"')?.strip_suffix('"'));
        text.is_some_and(Quantity::is_plainly_canonical)
    }
}

impl Serialize for Amount<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.written {
            Some(raw) => raw.serialize(serializer),
            None => self.quantity.serialize(serializer),
        }
    }
}

impl<'a> Amounts<'a> {
    /// The amount for writing, in canonical form or as it was written.
    pub(crate) fn canonical(&self, name: &str) -> Option<Cow<'_, Amount<'a>>> {
        let amount = self.entries.iter().find(|amount| amount.name == name)?;
        Some(if amount.is_canonical() {
            Cow::Borrowed(amount)
        } else {
            Cow::Owned(Amount { written: None, ..amount.clone() })
        })
    }

    /// Gives an amount another name; its text becomes canonical.
    pub(crate) fn rename(&mut self, from: &str, to: &'a str) {
        let Some(at) = self.entries.iter().position(|amount| amount.name == from) else { return };
        let mut amount = self.entries.remove(at);
        self.changed = true;
        if !amount.is_canonical() {
            amount.written = None;
        }
        amount.name = to.into();
        self.entries.retain(|other| other.name != to);
        self.entries.push(amount);
    }

    /// Takes over an amount of another list.
    pub(crate) fn copy(&mut self, name: &str, from: &Self) {
        if let Some(amount) = from.entries.iter().find(|amount| amount.name == name) {
            self.changed = true;
            self.entries.push(amount.clone());
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Quantity> {
        self.entries.iter().find(|amount| amount.name == name).map(|amount| &amount.quantity)
    }

    /// The names of the resources.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|amount| amount.name.as_ref())
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn set(&mut self, name: impl Into<Cow<'a, str>>, quantity: Quantity) {
        let name = name.into();
        self.changed = true;
        match self.entries.iter_mut().find(|amount| amount.name == name) {
            Some(amount) => *amount = Amount { name, quantity, written: None, is_null: false },
            None => self.entries.push(Amount { name, quantity, written: None, is_null: false }),
        }
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<Quantity> {
        let at = self.entries.iter().position(|amount| amount.name == name)?;
        self.changed = true;
        Some(self.entries.remove(at).quantity)
    }

    pub(crate) fn to_list(&self) -> ResourceList {
        self.entries.iter().map(|amount| (amount.name.as_ref(), amount.quantity.clone())).collect()
    }

    /// Writes amounts that are not in canonical form anew.
    pub(crate) fn write_canonically(&self, at: &Path<'_>, patch: &mut Patch) -> Result<(), serde_json::Error> {
        for amount in &self.entries {
            let canonical = format!("\"{}\"", amount.quantity);
            if amount.written.is_some_and(|raw| raw.get() != canonical) {
                patch.replace(&at.key(&amount.name), &amount.quantity)?;
            }
        }
        Ok(())
    }

    /// Whether both name the same amounts in the same form: `1` and `1000m` are one amount in two forms.
    pub(crate) fn has_same_form(&self, other: &Self) -> bool {
        self.entries.len() == other.entries.len()
            && self
                .entries
                .iter()
                .all(|amount| other.entries.iter().any(|other| other.name == amount.name && other.has_form_of(amount)))
    }

    /// Writes the map whole where something has changed.
    pub(crate) fn write(&self, at: &Path<'_>, patch: &mut Patch) -> Result<(), serde_json::Error> {
        if self.changed { patch.add(at, self) } else { Ok(()) }
    }
}

impl Serialize for Amounts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.entries.len()))?;
        for amount in &self.entries {
            map.serialize_entry(&amount.name, amount)?;
        }
        map.end()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Amounts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Amounts<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of quantities")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut amounts = Amounts { entries: Vec::with_capacity(4), ..Amounts::default() };
                while let Some((Text(name), raw)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
                    let quantity = read(raw.get()).map_err(A::Error::custom)?;
                    amounts.entries.push(Amount { name, quantity, written: Some(raw), is_null: raw.get() == "null" });
                }
                Ok(amounts)
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// A quantity from its JSON text: a string, a number, or `null` for nothing.
fn read(json: &str) -> Result<Quantity, String> {
    let plain = json.strip_prefix('"').and_then(|text| text.strip_suffix('"')).filter(|text| !text.contains('\\'));
    match plain {
        Some(text) => text.trim().parse::<Quantity>().map_err(|error| error.to_string()),
        None => serde_json::from_str::<Option<Quantity>>(json)
            .map(Option::unwrap_or_default)
            .map_err(|error| koord_resource::go_json::without_position(&error)),
    }
}
