//! The names of CEL's functions that a rule is compared with while it compiles.

use std::collections::BTreeSet;

#[test]
fn the_names_are_those_of_the_table_of_koord_schema() {
    let known: BTreeSet<&str> = include_str!("../../../../macros/src/cel/functions.txt").lines().collect();
    let table = include_str!("../../../schema/src/cel/functions.txt").lines().filter(|line| !line.starts_with('#'));
    // `name overload kind …`; operators and what macros are made of have names that no rule can write.
    let names: BTreeSet<String> = table
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words[0].starts_with(|first: char| first.is_ascii_alphabetic()) && !words[0].contains('@'))
        .filter(|words| words[0] != "in")
        .map(|words| format!("{} {}", words[2], words[0]))
        .collect();
    assert_eq!(names.iter().map(String::as_str).collect::<BTreeSet<_>>(), known);
}
