//! Files of a volume that lie where another one does.

use serde_json::Value;

use super::list;

/// A file of a volume, and what it comes from where a volume has several sources.
#[derive(Clone, PartialEq, Eq)]
struct File {
    path: String,
    source: String,
}

impl File {
    fn new(path: &Value, source: &str) -> Self {
        let path = path.as_str().unwrap_or_default().trim_end_matches('/').to_owned();
        Self { path, source: source.to_owned() }
    }

    fn shown(&self) -> String {
        if self.source.is_empty() { format!("{:?}", self.path) } else { format!("{:?} ({})", self.path, self.source) }
    }

    fn overlaps(&self, other: &Self) -> bool {
        let is_below = |inner: &str, outer: &str| format!("{inner}/").starts_with(&format!("{outer}/"));
        !self.path.is_empty()
            && !other.path.is_empty()
            && (is_below(&self.path, &other.path) || is_below(&other.path, &self.path))
    }
}

/// What is odd about the files of a pod's volumes.
pub(super) fn overlapping(spec: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for volume in list(spec, "volumes") {
        let name = volume["name"].as_str().unwrap_or_default();
        let mut warn = |kind: &str, files: Vec<File>| {
            for (index, file) in files.iter().enumerate() {
                for other in files[..index].iter().filter(|other| file.overlaps(other)) {
                    let (file, other) = (file.shown(), other.shown());
                    warnings.push(format!("volume {name:?} ({kind}): overlapping paths: {file} with {other}"));
                }
            }
        };
        let named = |kind: &str, name: &Value| format!("{kind} {:?}", name.as_str().unwrap_or_default());
        for (field, kind) in [
            ("configMap", named("ConfigMap", &volume["configMap"]["name"])),
            ("secret", named("Secret", &volume["secret"]["secretName"])),
            ("downwardAPI", "DownwardAPI".to_owned()),
        ] {
            warn(&kind, list(&volume[field], "items").map(|item| File::new(&item["path"], "")).collect());
        }
        let sources = || list(&volume["projected"], "sources");
        warn("Projected", sources().flat_map(files_of_source).collect());
        let empty = sources().filter(|source| source.as_object().is_some_and(serde_json::Map::is_empty));
        warnings.extend(empty.map(|_| format!("volume {name:?} (Projected) has no sources provided")));
    }
    warnings
}

fn files_of_source(source: &Value) -> Vec<File> {
    let named = |field: &str, kind: &str| format!("{kind} {:?}", source[field]["name"].as_str().unwrap_or_default());
    for (field, from) in [
        ("configMap", named("configMap", "ConfigMap")),
        ("secret", named("secret", "Secret")),
        ("downwardAPI", "DownwardAPI".to_owned()),
    ] {
        if source[field]["items"].is_array() {
            return list(&source[field], "items").map(|item| File::new(&item["path"], &from)).collect();
        }
    }
    let bundle = &source["clusterTrustBundle"];
    if source["serviceAccountToken"].is_object() {
        return vec![File::new(&source["serviceAccountToken"]["path"], "ServiceAccountToken")];
    }
    if bundle.is_object() {
        let name = bundle["name"].as_str().or_else(|| bundle["signerName"].as_str()).unwrap_or_default();
        return vec![File::new(&bundle["path"], &format!("ClusterTrustBundle {name:?}"))];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_in_the_place_of_another_is_reported() {
        let items = |paths: &[&str]| paths.iter().map(|path| json!({"key": "k", "path": path})).collect::<Vec<_>>();
        let spec = json!({"volumes": [
            {"name": "s", "secret": {"secretName": "x", "items": items(&["k", "k/"])}},
            {"name": "c", "configMap": {"name": "y", "items": items(&["a", "a/b", "ab"])}},
            {"name": "p", "projected": {"sources": [
                {"secret": {"name": "x", "items": items(&["t"])}}, {"serviceAccountToken": {"path": "t"}}, {},
            ]}},
        ]});
        assert_eq!(
            overlapping(&spec),
            [
                r#"volume "s" (Secret "x"): overlapping paths: "k" with "k""#,
                r#"volume "c" (ConfigMap "y"): overlapping paths: "a/b" with "a""#,
                r#"volume "p" (Projected): overlapping paths: "t" (ServiceAccountToken) with "t" (Secret "x")"#,
                r#"volume "p" (Projected) has no sources provided"#,
            ]
        );
    }
}
