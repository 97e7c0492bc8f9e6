//! Groups of resctrl, made and removed as strategies and hooks want them.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use koord_koordlet_system::{Writer, is_gone, parse_ids, read, resctrl::Schemata};

/// What was done for a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GroupChange {
    pub(crate) name: String,
    /// Files with what was written into them.
    pub(crate) written: Vec<(PathBuf, String)>,
    /// The folder that was removed.
    pub(crate) removed: Option<PathBuf>,
    /// What was not done, with a remedy.
    pub(crate) refused: Option<(String, &'static str)>,
}

/// Makes a group below the folder of resctrl, and gives it schemata and tasks; what it has already is not written again.
pub(crate) fn ensure_group(
    writer: &mut dyn Writer,
    resctrl: &Path,
    name: &str,
    schemata: &Schemata,
    tasks: &[u32],
) -> GroupChange {
    let mut change = GroupChange { name: name.to_owned(), ..GroupChange::default() };
    let folder = resctrl.join(name);
    if let Err(error) = writer.create_folder(&folder) {
        let reason = format!("{}: {error}", folder.display());
        change.refused = Some((reason, "mount resctrl, and remove unused groups: a machine has few"));
        return change;
    }
    let path = folder.join("schemata");
    let shown = read(&path).ok().and_then(|text| Schemata::parse(&text).ok()).unwrap_or_default();
    let texts = [
        schemata.l3_text().filter(|_| !shown.l3.holds(&schemata.l3)),
        schemata.bandwidth_text().filter(|_| !shown.bandwidth.holds(&schemata.bandwidth)),
    ];
    for text in texts.into_iter().flatten() {
        match writer.write(&path, &text) {
            Ok(()) => change.written.push((path.clone(), text.trim().to_owned())),
            Err(error) => {
                let reason = format!("{} refuses {:?}: {error}", path.display(), text.trim());
                change.refused = Some((reason, "see info/last_cmd_status of resctrl"));
            }
        }
    }
    add_tasks(writer, &folder.join("tasks"), tasks);
    change
}

/// Adds the tasks that the group does not have.
fn add_tasks(writer: &mut dyn Writer, path: &Path, tasks: &[u32]) {
    if tasks.is_empty() {
        return;
    }
    let text = read(path).unwrap_or_default();
    let known: BTreeSet<u32> = parse_ids("tasks", &text).filter_map(Result::ok).collect();
    for task in tasks.iter().filter(|task| !known.contains(task)) {
        // A task that has ended is none any more.
        if let Err(error) = writer.append(path, &task.to_string()) {
            tracing::debug!(task, path = %path.display(), %error, "a task was not added to its group");
        }
    }
}

/// Removes a group; one that is gone is no error.
pub(crate) fn remove_group(writer: &mut dyn Writer, resctrl: &Path, name: &str) -> GroupChange {
    let folder = resctrl.join(name);
    let mut change = GroupChange { name: name.to_owned(), ..GroupChange::default() };
    match writer.remove_folder(&folder) {
        Ok(()) => change.removed = Some(folder),
        Err(error) if is_gone(&error) => {}
        Err(error) => tracing::warn!(folder = %folder.display(), %error, "a group of resctrl cannot be removed"),
    }
    change
}

/// Removes a folder with all that is in it, and makes it anew for everyone.
pub(crate) fn recreate(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::create_dir_all(folder)?;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777))
}

#[cfg(test)]
mod tests {
    use koord_koordlet_system::KernelWriter;

    use super::*;

    #[test]
    fn only_what_a_group_lacks_is_written() {
        let resctrl = tempfile::tempdir().unwrap();
        let folder = resctrl.path().join("koordlet-1");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("schemata"), "    L3:0=ff;1=ff\n    MB:0=100;1=100\n").unwrap();
        std::fs::write(folder.join("tasks"), "10\n11\n").unwrap();
        let schemata = Schemata::parse(b"L3:0=f;1=f\nMB:0=100;1=100\n").unwrap();
        let apply = || ensure_group(&mut KernelWriter, resctrl.path(), "koordlet-1", &schemata, &[10, 12]);
        let change = apply();
        let texts: Vec<&str> = change.written.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["L3:0=f;1=f;"]);
        assert_eq!(change.refused, None);
        let tasks = || std::fs::read_to_string(folder.join("tasks")).unwrap();
        assert_eq!(tasks(), "10\n11\n12");
        // The file of a kernel shows both lines.
        std::fs::write(folder.join("schemata"), "L3:0=f;1=f\nMB:0=100;1=100\n").unwrap();
        assert_eq!(apply().written, []);
        assert_eq!(tasks(), "10\n11\n12");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let schemata = Schemata::parse(b"MB:0=100\n").unwrap();
        let change = ensure_group(&mut KernelWriter, Path::new("/nonexistent/resctrl"), "koordlet-1", &schemata, &[]);
        assert!(change.refused.unwrap().0.starts_with("/nonexistent/resctrl/koordlet-1: "));
        let change = remove_group(&mut KernelWriter, Path::new("/nonexistent/resctrl"), "koordlet-1");
        assert_eq!((change.removed, change.refused), (None, None));
    }
}
