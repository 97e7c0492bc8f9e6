//! Seeded changes of JSON objects: what a careless or hostile client might send instead.

use rand::{Rng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::{Value, json};

/// Texts that rules of names, addresses and quantities disagree about.
const TEXTS: &[&str] = &[
    "",
    "A b",
    "-x",
    "a.b",
    "a/b/c",
    "example.com/x",
    "0",
    "1",
    "-1",
    "1.5",
    "1Gi",
    "1500m",
    "10%",
    "None",
    "Always",
    "..",
    "../x",
    "/x",
    "10.0.0.1",
    "300.1.1.1",
    "::1",
    "a_b",
    "UPPER",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];
const NUMBERS: &[i64] = &[0, 1, -1, 2, 7, 100, 101, 65_535, 65_536, 2_147_483_647, 2_147_483_648];

/// Makes one to three changes below `object`, and never of its name. `pool` are objects to take parts of.
pub(crate) fn mutate(object: &mut Value, pool: &[Value], random: &mut StdRng) {
    let changes = [1, 1, 1, 1, 2, 2, 3].choose(random).copied().unwrap_or(1);
    for _ in 0..changes {
        let mut paths = Vec::new();
        collect(object, &mut String::new(), &mut paths);
        paths.retain(|path| !matches!(path.as_str(), "" | "/metadata" | "/metadata/name" | "/metadata/namespace"));
        if let Some(path) = paths.choose(random) {
            change(object, path, pool, random);
        }
    }
}

fn collect(value: &Value, path: &mut String, paths: &mut Vec<String>) {
    paths.push(path.clone());
    let length = path.len();
    let mut descend = |key: &str, value: &Value, paths: &mut Vec<String>| {
        path.push('/');
        path.push_str(&key.replace('~', "~0").replace('/', "~1"));
        collect(value, path, paths);
        path.truncate(length);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| descend(key, value, paths)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, value)| descend(&index.to_string(), value, paths));
        }
        _ => {}
    }
}

fn change(object: &mut Value, path: &str, pool: &[Value], random: &mut StdRng) {
    let (parent, last) = path.rsplit_once('/').unwrap_or_default();
    let key = last.replace("~1", "/").replace("~0", "~");
    match random.random_range(0..10) {
        0 | 1 => remove(object, parent, &key),
        2 => {
            if let Some(part) = part_of_pool(&key, pool, random)
                && let Some(place) = object.pointer_mut(path)
            {
                *place = part;
            }
        }
        3 => {
            // Another field that the same kind of object has elsewhere.
            let Some(fields) = object.pointer_mut(parent).and_then(Value::as_object_mut) else { return };
            if let Some((name, value)) = sibling_of_pool(&key, pool, random) {
                fields.insert(name, value);
            }
        }
        _ => {
            if let Some(place) = object.pointer_mut(path) {
                replace(place, random);
            }
        }
    }
}

fn remove(object: &mut Value, parent: &str, key: &str) {
    match object.pointer_mut(parent) {
        Some(Value::Object(fields)) => drop(fields.remove(key)),
        Some(Value::Array(items)) => {
            if let Some(index) = key.parse::<usize>().ok().filter(|index| *index < items.len()) {
                items.remove(index);
            }
        }
        _ => {}
    }
}

fn replace(place: &mut Value, random: &mut StdRng) {
    let text = TEXTS.choose(random).copied().unwrap_or_default();
    let number = NUMBERS.choose(random).copied().unwrap_or_default();
    let odd = random.random_range(0..8) == 0;
    match place {
        _ if odd => {
            let others =
                [Value::Null, json!(text), json!(number), json!(true), json!([]), json!({}), json!([text]), json!(1.5)];
            *place = others.choose(random).cloned().unwrap_or_default();
        }
        Value::String(known) => {
            *place = match random.random_range(0..4) {
                0 => json!(format!("{known}x")),
                1 => json!(known.to_uppercase()),
                _ => json!(text),
            };
        }
        Value::Number(_) => *place = json!(number),
        Value::Bool(known) => *place = json!(!*known),
        Value::Null => *place = json!(text),
        Value::Array(items) => match (random.random_range(0..3), items.choose(random).cloned()) {
            (0, Some(item)) => items.push(item),
            (1, _) => items.push(json!({})),
            _ => items.clear(),
        },
        Value::Object(fields) => match random.random_range(0..3) {
            0 => fields.clear(),
            1 => drop(fields.insert("unknownField".to_owned(), json!(1))),
            _ => drop(fields.insert(text.to_owned(), json!(text))),
        },
    }
}

fn part_of_pool(key: &str, pool: &[Value], random: &mut StdRng) -> Option<Value> {
    let mut found = Vec::new();
    for object in pool {
        find(object, key, &mut found);
    }
    found.choose(random).map(|value| (*value).clone())
}

fn find<'v>(value: &'v Value, key: &str, found: &mut Vec<&'v Value>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get(key));
            fields.values().for_each(|value| find(value, key, found));
        }
        Value::Array(items) => items.iter().for_each(|value| find(value, key, found)),
        _ => {}
    }
}

fn sibling_of_pool(key: &str, pool: &[Value], random: &mut StdRng) -> Option<(String, Value)> {
    let mut found = Vec::new();
    for object in pool {
        owners(object, key, &mut found);
    }
    let fields = found.choose(random)?;
    let (name, value) = fields.iter().collect::<Vec<_>>().choose(random).copied()?;
    Some((name.clone(), value.clone()))
}

fn owners<'v>(value: &'v Value, key: &str, found: &mut Vec<&'v serde_json::Map<String, Value>>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.contains_key(key).then_some(fields));
            fields.values().for_each(|value| owners(value, key, found));
        }
        Value::Array(items) => items.iter().for_each(|value| owners(value, key, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_object() {
        let object = json!({"metadata": {"name": "a"}, "spec": {"list": [{"x": 1, "y": "b"}], "on": true}});
        let made = |seed| {
            let mut changed = object.clone();
            mutate(&mut changed, std::slice::from_ref(&object), &mut StdRng::seed_from_u64(seed));
            changed
        };
        assert_eq!(made(1), made(1));
        assert!((0..50).any(|seed| made(seed) != object));
        assert!((0..50).all(|seed| made(seed)["metadata"]["name"] == "a"));
    }
}
