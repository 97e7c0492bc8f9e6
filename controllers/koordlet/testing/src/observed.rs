//! What is seen of a case, in the form of a recording.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::{Map, Value, json};

use crate::{
    agent::Event,
    api_server::ApiServer,
    case::Case,
    compare::{BEFORE, is_cpuset},
    kernel::{Written, whole_quota},
    names::{Names, text},
    pattern::matches,
};

/// Annotations whose text is JSON; they are compared by content.
const JSON_ANNOTATIONS: [&str; 8] = [
    "cpu-topology",
    "cpu-shared-pools",
    "pod-cpu-allocs",
    "cpu-basic-info",
    "cpu-manager-policy",
    "node.koordinator.sh/reservation",
    "system-qos-resource",
    "gpu-partitions",
];

/// All that is looked at.
pub(crate) struct Scene<'a> {
    pub(crate) case: &'a Case,
    pub(crate) names: &'a Names,
    pub(crate) root: &'a Path,
    pub(crate) work: &'a Path,
    /// The tree as it is when the agent writes nothing.
    pub(crate) files: &'a BTreeMap<String, String>,
    pub(crate) written: &'a [Written],
    pub(crate) server: &'a ApiServer,
    pub(crate) events: &'a [Event],
    pub(crate) cri_calls: &'a [Value],
    pub(crate) kubelet_requests: &'a [(String, bool)],
}

impl Scene<'_> {
    pub(crate) fn observe(&self, with_objects: bool) -> Value {
        let case = self.case;
        let written: BTreeSet<&String> = self.written.iter().map(|written| &written.path).collect();
        let mut seen = self.changed_files(&written);
        if case.has_resctrl() && self.written.iter().any(|written| is_resctrl(&written.path)) {
            let writes: BTreeSet<(&str, &str)> = self
                .written
                .iter()
                .filter(|written| is_resctrl(&written.path))
                .map(|written| (written.path.as_str(), written.text.as_str()))
                .collect();
            seen.insert("resctrlWrites".to_owned(), json!(writes));
        }
        if case.record_dirs {
            let mut folders = Vec::new();
            empty_folders(self.root, "", &mut folders);
            folders.sort();
            seen.insert("emptyDirs".to_owned(), json!(folders));
        }
        if !case.order.is_empty() {
            let mut order: Vec<&String> = Vec::new();
            for Written { path, .. } in self.written {
                if self.is_any(&case.order, path) && order.last() != Some(&path) {
                    order.push(path);
                }
            }
            seen.insert("order".to_owned(), json!(order));
        }
        if !case.counts.is_empty() {
            let counted = written.into_iter().filter(|path| self.is_any(&case.counts, path));
            let count = |path: &String| self.written.iter().filter(|written| written.path == *path).count();
            let counts: BTreeMap<&String, usize> = counted.map(|path| (path, count(path))).collect();
            seen.insert("counts".to_owned(), json!(counts));
        }
        if case.cri {
            seen.insert("criCalls".to_owned(), json!(self.cri_calls));
        }
        if case.kubelet_requests {
            let credentials = |has: &bool| if *has { " with credentials" } else { "" };
            let requests: BTreeSet<String> =
                self.kubelet_requests.iter().map(|(path, has)| format!("{path}{}", credentials(has))).collect();
            seen.insert("kubeletRequests".to_owned(), json!(requests));
        }
        self.work_files(&mut seen);
        if with_objects {
            let objects = self.objects();
            if !objects.is_empty() {
                seen.insert("objects".to_owned(), Value::Object(objects));
            }
        }
        Value::Object(seen)
    }

    fn is_any(&self, patterns: &[String], path: &str) -> bool {
        patterns.iter().any(|pattern| matches(&self.names.fill(pattern), path))
    }

    fn is_recorded(&self, path: &str) -> bool {
        !path.ends_with("cpuset.cpus.effective")
            && !self.is_any(&self.case.ignore, path)
            && self.case.keep.as_ref().is_none_or(|keep| self.is_any(keep, path))
    }

    /// `files` and `rewritten`.
    fn changed_files(&self, written: &BTreeSet<&String>) -> Map<String, Value> {
        let mut present = BTreeMap::new();
        read_files(self.root, "", &mut present);
        let (mut files, mut rewritten) = (Map::new(), Vec::new());
        for (path, mut content) in present.iter().map(|(path, content)| (path, content.clone())) {
            let name = path.rsplit('/').next().unwrap_or_default();
            if path == "proc/stat" || matches!(name, "cpuacct.usage" | "cpu.stat") {
                continue;
            }
            if name == "cpu.max" && self.case.is_v2() {
                content = whole_quota(&content);
            }
            if name == "koordlet.json" {
                content = sorted_hooks(&content).unwrap_or(content);
            }
            if self.files.get(path).is_none_or(|before| before.trim() != content.trim()) {
                if self.is_recorded(path) {
                    files.insert(path.clone(), json!(content.trim_end_matches('\n')));
                }
            } else if written.contains(path) && self.is_recorded(path) {
                rewritten.push(path.clone());
            }
        }
        for path in self.files.keys().filter(|path| !self.root.join(path).exists() && self.is_recorded(path)) {
            files.insert(path.clone(), Value::Null);
        }
        let mut seen =
            Map::from_iter([("files".to_owned(), Value::Object(files)), ("rewritten".to_owned(), json!(rewritten))]);
        seen.insert(BEFORE.to_owned(), Value::Object(self.cpusets_before()));
        seen
    }

    /// What cpusets said before the agent, where the original has changed them.
    fn cpusets_before(&self) -> Map<String, Value> {
        let snapshots = self.case.recorded["snapshots"].as_object().into_iter().flatten().map(|(_, state)| state);
        let states = snapshots.chain([&self.case.recorded]);
        let paths = states.flat_map(|state| state["files"].as_object().into_iter().flatten()).map(|(path, _)| path);
        let cpusets = paths.filter(|path| is_cpuset(path));
        cpusets.filter_map(|path| Some((path.clone(), json!(self.files.get(path)?)))).collect()
    }

    fn work_files(&self, seen: &mut Map<String, Value>) {
        if self.case.work_names_out.is_empty() && self.case.work_files_out.is_empty() {
            return;
        }
        let mut present = BTreeMap::new();
        read_files(self.work, "", &mut present);
        let depth = |text: &str| text.matches('/').count();
        let has = |patterns: &[String], path: &str| {
            patterns.iter().any(|pattern| matches(pattern, path) && depth(pattern) == depth(path))
        };
        if !self.case.work_names_out.is_empty() {
            let names: Vec<&String> = present.keys().filter(|path| has(&self.case.work_names_out, path)).collect();
            seen.insert("workNames".to_owned(), json!(names));
        }
        let files: Map<String, Value> = present
            .iter()
            .filter(|(path, _)| has(&self.case.work_files_out, path))
            .map(|(path, content)| (path.clone(), json!(content)))
            .collect();
        if !files.is_empty() {
            seen.insert("workFiles".to_owned(), Value::Object(files));
        }
    }

    fn objects(&self) -> Map<String, Value> {
        let (case, mut objects) = (self.case, Map::new());
        for kind in &case.watch {
            match kind.as_str() {
                "Pods" => {
                    let is_gone = |pod: &&Value| {
                        let found =
                            self.server.get("Pod", text(pod, "/metadata/namespace"), text(pod, "/metadata/name"));
                        found.is_none_or(|pod| !pod["metadata"]["deletionTimestamp"].is_null())
                    };
                    let names = case.all_pods().filter(is_gone).map(|pod| text(pod, "/metadata/name"));
                    let evicted: BTreeSet<&str> =
                        names.filter(|name| !case.no_api_pod.iter().any(|missing| missing == name)).collect();
                    objects.insert("evicted".to_owned(), json!(evicted));
                }
                "Events" => _ = objects.insert("events".to_owned(), self.events()),
                "NodeMetric" | "NodeSLO" | "Device" | "NodeResourceTopology" | "Node" => {
                    let object = self.server.get(kind, "", &case.node_name).map_or(Value::Null, comparable);
                    objects.insert(kind.clone(), object);
                }
                _ => {}
            }
        }
        objects
    }

    fn events(&self) -> Value {
        let all = self.events.iter().chain(&self.server.events);
        let of_case = all.filter(|event| event.namespace == self.case.name || event.name == self.case.node_name);
        let fields: BTreeSet<[&str; 6]> = of_case
            .map(|event| {
                [&event.component, &event.kind, &event.message, &event.name, &event.reason, &event.type_]
                    .map(String::as_str)
            })
            .collect();
        let shown = |[component, kind, message, name, reason, type_]: [&str; 6]| json!({"component": component, "kind": kind, "message": message, "name": name, "reason": reason, "type": type_});
        fields.into_iter().map(shown).collect()
    }
}

fn is_resctrl(path: &str) -> bool {
    path.starts_with("sysfs/resctrl/") && (path.ends_with("/schemata") || path.ends_with("/tasks"))
}

/// All files below a folder but sockets.
fn read_files(folder: &Path, below: &str, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            read_files(&entry.path(), &path, files);
        } else if Path::new(&name).extension().is_none_or(|extension| extension != "sock")
            && let Ok(content) = fs::read(entry.path())
        {
            files.insert(path, String::from_utf8_lossy(&content).into_owned());
        }
    }
}

fn empty_folders(folder: &Path, below: &str, found: &mut Vec<String>) {
    let entries: Vec<fs::DirEntry> = fs::read_dir(folder).into_iter().flatten().flatten().collect();
    if entries.is_empty() {
        found.push(below.to_owned());
    }
    for entry in entries.iter().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        empty_folders(&entry.path(), &path, found);
    }
}

/// The configuration of the runtime proxy with its hooks in one order.
fn sorted_hooks(content: &str) -> Option<String> {
    let mut document: Value = serde_json::from_str(content).ok()?;
    let hooks = document.get_mut("runtime-hooks")?.as_array_mut()?;
    hooks.sort_by_key(Value::to_string);
    Some(document.to_string())
}

/// An object without what differs from run to run.
fn comparable(object: &Value) -> Value {
    let mut object = object.clone();
    let kind = text(&object, "/kind").to_owned();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink"] {
            metadata.remove(field);
        }
        for owner in metadata.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten() {
            remove(owner, "uid");
        }
        for (name, value) in metadata.get_mut("annotations").and_then(Value::as_object_mut).into_iter().flatten() {
            let is_json = JSON_ANNOTATIONS.iter().any(|known| name.contains(known));
            if let Some(content) =
                value.as_str().filter(|_| is_json).and_then(|text| serde_json::from_str::<Value>(text).ok())
            {
                *value = json!({"json": content});
            }
        }
    }
    match kind.as_str() {
        "NodeMetric" => remove(&mut object["status"], "updateTime"),
        "Node" => {
            let mut metadata = object["metadata"].take();
            if let Some(annotations) = metadata.get_mut("annotations") {
                remove(annotations, "node.alpha.kubernetes.io/ttl");
            }
            object = json!({"metadata": metadata});
        }
        "Device" => {
            let conditions = |owner: &mut Value| {
                for condition in owner.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
                    remove(condition, "lastTransitionTime");
                }
            };
            for device in object.pointer_mut("/spec/devices").and_then(Value::as_array_mut).into_iter().flatten() {
                conditions(device);
            }
            if let Some(status) = object.get_mut("status") {
                conditions(status);
            }
        }
        _ => {}
    }
    object
}

fn remove(object: &mut Value, key: &str) {
    if let Some(members) = object.as_object_mut() {
        members.remove(key);
    }
}
