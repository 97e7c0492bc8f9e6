//! Numbers and amounts of objects, at the ends of what can be written.

use koord_resource::Quantity;
use serde_json::{Value, json};

/// The ends of 64 and of 32 bits, what is beyond all of them, and nothing.
pub(super) const EXTREMES: [&str; 9] = [
    "9223372036854775807",
    "-9223372036854775808",
    "0",
    "2147483647",
    "-2147483648",
    "9223372036854775807m",
    "-9223372036854775808m",
    "1e400",
    "-1",
];

/// A number or an amount of an object: which object, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) object: usize,
    pointer: String,
    is_amount: bool,
}

/// All of these objects.
pub(super) fn places(objects: &[Value]) -> Vec<Place> {
    let mut places = Vec::new();
    for (object, value) in objects.iter().enumerate() {
        find(value, object, "", &mut places);
    }
    places
}

fn find(value: &Value, object: usize, pointer: &str, places: &mut Vec<Place>) {
    let below = |key: &str| format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| find(value, object, &below(key), places)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, value)| find(value, object, &below(&at.to_string()), places));
        }
        Value::Number(_) => places.push(Place { object, pointer: pointer.to_owned(), is_amount: false }),
        Value::String(text) if text.parse::<Quantity>().is_ok() => {
            places.push(Place { object, pointer: pointer.to_owned(), is_amount: true });
        }
        Value::String(_) | Value::Bool(_) | Value::Null => {}
    }
}

impl Place {
    /// Puts an extreme there, as far as the place can hold it.
    pub(super) fn set(&self, objects: &mut [Value], extreme: &str) {
        let value = if self.is_amount { Some(json!(extreme)) } else { extreme.parse::<i64>().ok().map(Value::from) };
        let place = objects.get_mut(self.object).and_then(|object| object.pointer_mut(&self.pointer));
        if let (Some(place), Some(value)) = (place, value) {
            *place = value;
        }
    }
}

/// Chooses places and extremes by bytes: two for the place, and one for the extreme.
pub(super) fn set_by(bytes: &[u8], objects: &mut [Value]) {
    let places = places(objects);
    for chosen in bytes.chunks_exact(3) {
        let &[high, low, extreme] = chosen else { continue };
        if let Some(place) = places.get(usize::from(u16::from_be_bytes([high, low])) % places.len().max(1)) {
            place.set(objects, EXTREMES[usize::from(extreme) % EXTREMES.len()]);
        }
    }
}
