//! Reservations.

use koord_types::reservation::Reservation;
use serde_json::{Value, json};

/// An available Reservation `r` on `n1` of 4 cores and 8 units of memory, with these members laid over it.
pub fn reservation(members: Value) -> Reservation {
    let mut object = json!({
        "metadata": {"name": "r", "uid": "r"},
        "spec": {"template": {}, "owners": [{}]},
        "status": {"phase": "Available", "nodeName": "n1", "allocatable": {"cpu": "4", "memory": "8"}},
    });
    overlay(&mut object, members);
    serde_json::from_value(object).unwrap()
}

fn overlay(onto: &mut Value, over: Value) {
    match (onto, over) {
        (Value::Object(onto), Value::Object(over)) => {
            over.into_iter().for_each(|(key, value)| overlay(onto.entry(key).or_insert(Value::Null), value));
        }
        (onto, over) => *onto = over,
    }
}
