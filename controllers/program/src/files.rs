//! Objects in files, as kubectl takes them: YAML or JSON, several documents, lists, folders, standard input.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use koord_resource::yaml::{documents, read_text, read_text_up_to};
use serde_json::{Value, json};

/// A file with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// As it was named.
    pub name: String,
    /// What stands in it.
    pub text: String,
    /// Whether it was named on the command line. Of a folder it may be something else than objects, such as a chart's values.
    pub is_named: bool,
}

/// Reads files. `-` is standard input; a folder stands for the files in it and below it that end in .yaml, .yml or .json.
pub fn read(paths: &[PathBuf]) -> Result<Vec<File>> {
    let mut files = Vec::new();
    for path in paths {
        if path == Path::new("-") {
            let text = read_text(std::io::stdin()).context("standard input cannot be read")?;
            files.push(File { name: "-".to_owned(), text, is_named: true });
        } else {
            collect(path, true, &mut files)?;
        }
    }
    Ok(files)
}

/// Most bytes of the configuration file of a component: none is as long, and a program that decodes one handles no signal.
pub const CONFIGURATION_BYTES_MAX: u64 = 1 << 20;

/// Reads the configuration file of a component, of at most [`CONFIGURATION_BYTES_MAX`].
pub fn read_configuration(path: &Path) -> io::Result<String> {
    fs::File::open(path).and_then(|file| read_text_up_to(CONFIGURATION_BYTES_MAX, file))
}

fn collect(path: &Path, is_named: bool, files: &mut Vec<File>) -> Result<()> {
    let cannot = || format!("{} cannot be read", path.display());
    if !path.is_dir() {
        let text = fs::File::open(path).and_then(read_text).with_context(cannot)?;
        files.push(File { name: path.display().to_string(), text, is_named });
        return Ok(());
    }
    let mut inside = Vec::new();
    for entry in fs::read_dir(path).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        // Links are not followed, so that a folder cannot contain itself.
        let kind = entry.file_type().with_context(cannot)?;
        let path = entry.path();
        let is_manifest =
            path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known));
        if kind.is_dir() || (kind.is_file() && is_manifest) {
            inside.push(path);
        }
    }
    ensure!(
        !is_named || !inside.is_empty(),
        "{} holds nothing to read: no folder, and no file that ends in .yaml, .yml or .json",
        path.display()
    );
    inside.sort();
    inside.iter().try_for_each(|path| collect(path, false, files))
}

/// The objects in these files, with lists taken apart. A list that was cut off is an error, and something else in a file that was
/// named is one.
pub fn objects(paths: &[PathBuf]) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for File { name, text, is_named } in read(paths)? {
        let found = documents(&text).map_err(|error| anyhow!("{name} is no YAML: {error}"))?;
        for mut document in found {
            match document.get_mut("items").map(Value::take) {
                Some(Value::Array(items)) => {
                    if let Some(missing) = cut_off(&document) {
                        bail!("{name} has {missing}: it was cut off; save it again");
                    }
                    objects.extend(items);
                }
                _ if document["kind"].is_string() => objects.push(document),
                _ if is_named => bail!("{name} holds something that is no object: an object needs apiVersion and kind"),
                _ => {}
            }
        }
    }
    Ok(objects)
}

/// What shows that a list is not whole; none where nothing does.
fn cut_off(list: &Value) -> Option<&'static str> {
    if list["apiVersion"].is_string() && !list["kind"].is_string() {
        return Some("a list without its kind, which stands at the end of lists that are saved");
    }
    names_next_page(list).then_some("one page of a list, whose metadata.continue names the next")
}

/// Whether a list is one page, as an API server answers a request with a limit, and says where the next begins.
pub fn names_next_page(list: &Value) -> bool {
    list["metadata"]["continue"].as_str().is_some_and(|token| !token.is_empty())
}

/// Gives an object of a file what a server gives every object: a uid, a revision and, where it needs one, a namespace.
/// What is no object, or has metadata that are none, stays as it is: who reads it says so.
pub fn as_stored(object: &mut Value, namespaced: bool) {
    let Some(object) = object.as_object_mut() else { return };
    let Some(metadata) = object.entry("metadata").or_insert_with(|| json!({})).as_object_mut() else { return };
    let namespace = namespaced.then_some(("namespace", "default"));
    for (field, text) in [("uid", "none"), ("resourceVersion", "1")].into_iter().chain(namespace) {
        let value = metadata.entry(field).or_insert(Value::Null);
        if value.is_null() {
            *value = text.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_objects_are_completed() {
        let stored = |mut value: Value| {
            as_stored(&mut value, true);
            value
        };
        for other in [json!(5), json!(null), json!([]), json!({"metadata": 5})] {
            assert_eq!(stored(other.clone()), other);
        }
        let complete = json!({"metadata": {"uid": "u", "resourceVersion": "1", "namespace": "default"}});
        assert_eq!(stored(json!({"metadata": {"uid": "u", "namespace": null}})), complete);
    }

    #[test]
    fn a_configuration_that_is_too_long_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        // The limit lies within a letter.
        for (bytes, answer) in [(1 << 20, Ok(1 << 20)), ((1 << 20) + 2, Err("it is longer than 1 MiB".to_owned()))] {
            fs::write(&file, "\u{e4}".repeat(bytes / 2)).unwrap();
            let read = read_configuration(&file);
            assert_eq!(read.map(|text| text.len()).map_err(|error| error.to_string()), answer);
        }
        fs::write(&file, [0xff]).unwrap();
        assert_eq!(read_configuration(&file).unwrap_err().to_string(), "it is not UTF-8");
    }

    #[test]
    fn folders_are_read_in_order_and_lists_are_taken_apart() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        fs::create_dir(folder.path().join("b")).unwrap();
        put("c.json", r#"{"kind": "C"}"#);
        put("a.yaml", "kind: List\nitems: [{kind: A1}, {kind: A2}]\n---\n");
        put("b/b.yml", "kind: B");
        put("README.md", "kind: README");
        let kinds = |objects: Vec<Value>| -> Vec<String> {
            objects.iter().map(|object| object["kind"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(kinds(objects(&[folder.path().to_owned()]).unwrap()), ["A1", "A2", "B", "C"]);
        let named = folder.path().join("README.md");
        assert_eq!(kinds(objects(&[named]).unwrap()), ["README"], "a file that is named is read whatever its name");
        let error = objects(&["no/such".into()]).unwrap_err();
        assert_eq!(error.to_string(), "no/such cannot be read");
    }

    #[test]
    fn a_list_that_was_cut_off_is_refused_in_a_file_and_in_a_folder() {
        let page = |token: &str| {
            format!(
                "apiVersion: v1\nkind: PodList\nmetadata: {{resourceVersion: '9', continue: {token}}}\nitems: [{{kind: Pod}}]\n"
            )
        };
        let no_kind = "apiVersion: v1\nitems:\n- {kind: Pod}\n".to_owned();
        for (text, says) in [(no_kind, "a list without its kind"), (page("abc"), "metadata.continue names the next")] {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir(folder.path().join("below")).unwrap();
            let file = folder.path().join("below/list.yaml");
            fs::write(&file, text).unwrap();
            for path in [file.clone(), folder.path().to_owned()] {
                let error = objects(&[path]).unwrap_err().to_string();
                assert!(error.starts_with(&file.display().to_string()) && error.contains(says), "{error}");
                assert!(error.ends_with("it was cut off; save it again"), "{error}");
            }
            fs::write(&file, page("''")).unwrap();
            assert_eq!(objects(&[folder.path().to_owned()]).unwrap().len(), 1, "the last page, or all");
        }
    }
}
