//! Inside of these crates the rooms form no circle: a room, which is a file with the folder of its name, uses only rooms
//! that do not use it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Folders of the crates without circles.
const CRATES: [&str; 1] = ["macros"];

/// The rooms of a crate, each with those that it uses.
fn rooms(source: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut rooms: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in fs::read_dir(source).unwrap().map(|entry| entry.unwrap().path()) {
        let room = entry.file_stem().unwrap().to_string_lossy().into_owned();
        let used = if entry.is_dir() { used_below(&entry) } else { used(&fs::read_to_string(&entry).unwrap()) };
        rooms.entry(room).or_default().extend(used);
    }
    // The root names all rooms, and what is built for tests alone is no room.
    rooms.remove("lib");
    rooms.remove("expansions");
    let names: BTreeSet<String> = rooms.keys().cloned().collect();
    for (room, used) in &mut rooms {
        used.retain(|other| other != room && names.contains(other));
    }
    rooms
}

fn used_below(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|entry| if entry.is_dir() { used_below(&entry) } else { used(&fs::read_to_string(&entry).unwrap()) })
        .collect()
}

/// The first names behind `crate::`, alone or in braces.
fn used(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for rest in text.split("crate::").skip(1) {
        let Some(list) = rest.strip_prefix('{') else {
            found.insert(name(rest));
            continue;
        };
        let mut depth = 0_usize;
        let mut start = 0;
        for (index, letter) in list.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    found.insert(name(list[start..index].trim()));
                    start = index + 1;
                    if letter == '}' {
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    found
}

fn name(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

#[test]
fn no_room_uses_a_room_that_uses_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for folder in CRATES {
        let mut left = rooms(&root.join(folder).join("src"));
        assert!(left.len() > 10, "{folder}");
        // Rooms that use none of those that are left are taken away; what remains are circles.
        loop {
            let names: BTreeSet<String> = left.keys().cloned().collect();
            let before = left.len();
            left.retain(|_, used| !used.is_disjoint(&names));
            if left.len() == before {
                break;
            }
        }
        assert!(left.is_empty(), "{folder}: circles among {left:?}");
    }
}

#[test]
fn names_are_found_alone_and_in_braces() {
    let text = "use crate::{a::{b, c}, d,\n e::f};\nlet x = crate::g::h();";
    assert_eq!(used(text).into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>(), ["a", "d", "e", "g"]);
}
