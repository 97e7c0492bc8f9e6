//! Writes the field numbers of built-in kinds, taken from the sources of the crate `k8s-pb`:
//!
//! ```text
//! cargo run -p koord-apiserver --example protobuf -- K8S_PB_SOURCES
//! ```
//!
//! One line per message: its name, then `number:field:type`. `*` before a type repeats it, `%` makes it a map from strings, `@` is a
//! message, and a field named `-` stands in JSON where its message's own fields are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{env, error, fs};

use envtest::builtins::{self, Shape};

type Outcome<T> = Result<T, Box<dyn error::Error>>;
/// Fields by the name of their message.
type Messages = BTreeMap<String, Vec<String>>;

fn main() -> Outcome<()> {
    let root = env::args().nth(1).ok_or("name the folder `src` of the crate k8s-pb")?;
    let mut messages = BTreeMap::new();
    visit(Path::new(&root), &[], &mut messages)?;
    let mut text = String::from("# Written by `cargo run -p koord-apiserver --example protobuf`.\n");
    for name in used(&messages) {
        text.push_str(format!("{name} {}", messages[&name].join(" ")).trim_end());
        text.push('\n');
    }
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/protobuf/fields.txt");
    fs::write(target, text)?;
    Ok(())
}

/// The messages that the server knows as types, and all that stand in them: the crate writes some names differently
/// (`IngressTls`), and some exist for embedding only (`IngressRuleValue`).
fn used(messages: &Messages) -> BTreeSet<String> {
    let known = |name: &&String| builtins::definition(&format!("io.k8s.{name}")).is_some();
    let mut waiting: Vec<String> = messages.keys().filter(known).cloned().collect();
    let mut used = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        let Some(fields) = messages.get(&name) else { continue };
        let inner = fields.iter().filter_map(|field| field.split_once('@')).map(|(_, inner)| inner.to_owned());
        waiting.extend(inner.filter(|inner| !used.contains(inner)));
        used.insert(name);
    }
    used
}

fn visit(folder: &Path, module: &[String], messages: &mut Messages) -> Outcome<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            visit(&path, &[module, &[name]].concat(), messages)?;
        } else if path.ends_with("mod.rs") {
            read(&fs::read_to_string(&path)?, module, messages);
        }
    }
    Ok(())
}

fn read(text: &str, module: &[String], messages: &mut Messages) {
    let (mut message, mut attribute) = (String::new(), String::new());
    let mut fields: Vec<String> = Vec::new();
    // A field whose type stands on the lines below it.
    let mut wrapped: Option<(&str, String)> = None;
    for line in text.lines().map(str::trim) {
        if line.starts_with("///") || line.starts_with("pub mod ") {
            continue;
        }
        if let Some(name) = line.strip_prefix("pub struct ") {
            message = format!("{}.{}", module.join("."), name.trim_end_matches([' ', '{', '}']));
            fields.clear();
        } else if let Some(rest) = line.strip_prefix("#[prost(") {
            rest.clone_into(&mut attribute);
        } else if let Some((name, type_)) =
            wrapped.take().or_else(|| line.strip_prefix("pub ")?.split_once(':').map(|(name, _)| (name, String::new())))
        {
            let more = line.strip_prefix("pub ").and_then(|line| line.split_once(':')).filter(|_| type_.is_empty());
            let type_ = type_ + more.map_or(line, |(_, rest)| rest);
            if type_.ends_with(',') && type_.matches('<').count() == type_.matches('>').count() {
                fields.extend(field(&message, module, &attribute, name, &type_));
                attribute.clear();
            } else {
                wrapped = Some((name, type_));
            }
        } else if line == "}" && !message.is_empty() {
            messages.insert(std::mem::take(&mut message), std::mem::take(&mut fields));
        }
    }
}

fn field(message: &str, module: &[String], attribute: &str, name: &str, type_: &str) -> Option<String> {
    let tag = attribute.split("tag = \"").nth(1)?.split('"').next()?;
    let scalar = |word: &str| match word {
        "string" => Some("string"),
        "bytes" => Some("bytes"),
        "bool" => Some("bool"),
        "double" => Some("double"),
        "int32" | "int64" => Some("int"),
        _ => None,
    };
    let inner = type_.trim_end_matches([',', '>']).rsplit(['<', ' ', ',']).next()?;
    let target = || {
        let mut path = module.to_vec();
        for part in inner.split("::") {
            if part == "super" {
                path.pop();
            } else {
                path.push(part.to_owned());
            }
        }
        format!("@{}", path.join("."))
    };
    let kind = if let Some(rest) = attribute.split("map = \"").nth(1) {
        let value = rest.split('"').next()?.split(',').nth(1)?.trim();
        format!("%{}", scalar(value).map_or_else(target, ToOwned::to_owned))
    } else {
        let word = attribute.split([',', '=']).next()?.trim();
        let repeated = if attribute.contains("repeated") { "*" } else { "" };
        format!("{repeated}{}", scalar(word).map_or_else(target, ToOwned::to_owned))
    };
    let plain = name.trim_start_matches("r#").replace('_', "").to_lowercase();
    let json = match builtins::definition(&format!("io.k8s.{message}")).map(|definition| &definition.shape) {
        Some(Shape::Object(fields)) => {
            let known = fields.keys().find(|known| known.to_lowercase().replace(['$', '-'], "") == plain);
            known.map_or_else(|| if kind.starts_with('@') { "-".to_owned() } else { camel(name) }, ToString::to_string)
        }
        _ => camel(name),
    };
    Some(format!("{tag}:{json}:{kind}"))
}

fn camel(name: &str) -> String {
    let mut parts = name.trim_start_matches("r#").split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + &part[..1].to_uppercase() + &part[1..])
}
