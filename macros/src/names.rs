//! The names that the user's package has for koord-resource, koord-runtime and koord-configuration, as its Cargo.toml gives them.

use std::{cell::RefCell, fs, iter, path::PathBuf, rc::Rc, time::SystemTime};

use proc_macro2::Span;
use quote::format_ident;
use syn::Path;
use toml::de::DeTable;

use crate::{entry::Entry, report::Report};

/// The package that exports all others.
const FACADE: &str = "koord";

/// A package that derived code names.
struct Wanted {
    /// The word that says in an attribute where it is.
    word: &'static str,
    package: &'static str,
    /// The module of the facade that it is, and the feature that brings it; none for the facade's root.
    module: Option<&'static str>,
}

const RESOURCE: Wanted = Wanted { word: "crate", package: "koord-resource", module: None };
const RUNTIME: Wanted = Wanted { word: "runtime", package: "koord-runtime", module: Some("runtime") };
const CONFIGURATION: Wanted = Wanted { word: "crate", package: "koord-configuration", module: Some("configuration") };

/// Where derived code finds koord-resource.
pub(crate) fn resource(entries: &[Entry], report: &Report) -> Path {
    RESOURCE.find(entries, report)
}

/// Where derived code finds koord-configuration.
pub(crate) fn configuration(entries: &[Entry], report: &Report) -> Path {
    CONFIGURATION.find(entries, report)
}

/// Where derived code finds koord-runtime.
pub(crate) fn runtime(entries: &[Entry], report: &Report) -> Path {
    RUNTIME.find(entries, report)
}

impl Wanted {
    /// What the attribute says, or else what Cargo.toml says. Where neither leads anywhere, the report knows.
    fn find(&self, entries: &[Entry], report: &Report) -> Path {
        let given = entries.iter().find(|entry| entry.name() == self.word);
        if let Some(path) = given.and_then(|entry| report.keep(entry.path_to("the path of a crate"))) {
            return path;
        }
        // Without a manifest, as other build systems compile, the package has its own name.
        let Some(package) = Package::current() else { return path(self.package, None) };
        self.within(&package.manifest).unwrap_or_else(|| {
            report.lacks(package.says_once(self));
            path(self.package, None)
        })
    }

    /// The path by which the package with this manifest reaches the wanted one.
    fn within(&self, manifest: &Manifest) -> Option<Path> {
        // The unit tests of this package expand code, and compile none.
        if manifest.package == self.package || manifest.package == env!("CARGO_PKG_NAME") {
            return Some(path(self.package, None));
        }
        // What a library needs itself comes first: what its tests need is not there when it is compiled alone.
        manifest.sections.iter().find_map(|section| {
            let name_of = |package: &str| section.iter().find(|dependency| dependency.package == package);
            match name_of(self.package) {
                Some(dependency) => Some(path(&dependency.name, None)),
                None => Some(path(&name_of(FACADE)?.name, self.module)),
            }
        })
    }

    /// What is wrong with a manifest without the package.
    fn missing(&self, manifest: &Manifest) -> String {
        const VERSION: &str = env!("CARGO_PKG_VERSION");
        let line = match self.module {
            Some(_) if RESOURCE.within(manifest).is_some() => format!("{} = \"{VERSION}\"", self.package),
            Some(feature) => format!("{FACADE} = {{ version = \"{VERSION}\", features = [\"{feature}\"] }}"),
            None => format!("{FACADE} = \"{VERSION}\""),
        };
        let exported = self.module.map_or_else(String::new, |module| format!("::{module}"));
        format!(
            "the code that is made here names `{}`, and Cargo.toml has no dependency on it; add `{line}` to `[dependencies]`, or say who exports it, as in `{} = prelude::koord{exported}`",
            self.package, self.word
        )
    }
}

/// `::name`, or `::name::module`.
fn path(name: &str, module: Option<&str>) -> Path {
    let name = format_ident!("{}", name.replace('-', "_"));
    let module = module.map(|module| format_ident!("{module}")).into_iter();
    syn::parse_quote!(::#name #(::#module)*)
}

/// The package whose code is compiled.
struct Package {
    file: PathBuf,
    modified: Option<SystemTime>,
    manifest: Manifest,
    /// What was said to be missing.
    said: RefCell<Vec<&'static str>>,
}

thread_local! {
    /// The package that was read last: a run of the compiler expands the code of one package.
    static LAST: RefCell<Option<Rc<Package>>> = const { RefCell::new(None) };
}

impl Package {
    fn current() -> Option<Rc<Self>> {
        let folder = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?);
        let file = folder.join("Cargo.toml");
        let modified = fs::metadata(&file).and_then(|metadata| metadata.modified()).ok();
        LAST.with_borrow_mut(|last| {
            if let Some(package) = last.as_ref().filter(|last| last.file == file && last.modified == modified) {
                return Some(Rc::clone(package));
            }
            let manifest = Manifest::read(&folder)?;
            let package = Rc::new(Package { file, modified, manifest, said: RefCell::default() });
            *last = Some(Rc::clone(&package));
            Some(package)
        })
    }

    /// The mistake of a manifest without the package; none where it was said of another type.
    fn says_once(&self, wanted: &Wanted) -> Option<syn::Error> {
        let mut said = self.said.borrow_mut();
        if said.contains(&wanted.package) {
            return None;
        }
        said.push(wanted.package);
        Some(syn::Error::new(Span::call_site(), wanted.missing(&self.manifest)))
    }
}

/// What a Cargo.toml says of dependencies.
struct Manifest {
    package: String,
    /// Those of the library, of its tests, and of its build script.
    sections: [Vec<Dependency>; 3],
}

/// A dependency: what the code calls it, and its package.
struct Dependency {
    name: String,
    package: String,
}

impl Manifest {
    fn read(folder: &std::path::Path) -> Option<Self> {
        let read = |folder: &std::path::Path| fs::read_to_string(folder.join("Cargo.toml")).ok();
        let inherited = folder.ancestors().find_map(|folder| of_workspace(&read(folder)?)).unwrap_or_default();
        Self::parse(&read(folder)?, &inherited)
    }

    /// Reads a manifest; `inherited` are the dependencies of its workspace.
    fn parse(text: &str, inherited: &[Dependency]) -> Option<Self> {
        let document = DeTable::parse(text).ok()?;
        let document = document.get_ref();
        let package = table(document, "package").and_then(|package| package.get("name")?.get_ref().as_str());
        let sections = ["dependencies", "dev-dependencies", "build-dependencies"].map(|section| {
            let targets = table(document, "target").into_iter().flat_map(DeTable::values);
            let targets = targets.filter_map(|target| target.get_ref().as_table());
            let sections = iter::once(document).chain(targets).filter_map(|holder| table(holder, section));
            sections.flat_map(|section| dependencies(section, inherited)).collect()
        });
        Some(Manifest { package: package.unwrap_or_default().to_owned(), sections })
    }
}

/// The dependencies that members of a workspace inherit; none where the manifest is of no workspace.
fn of_workspace(text: &str) -> Option<Vec<Dependency>> {
    let document = DeTable::parse(text).ok()?;
    let workspace = table(document.get_ref(), "workspace")?;
    Some(table(workspace, "dependencies").map(|section| dependencies(section, &[])).unwrap_or_default())
}

fn table<'t, 'i>(of: &'t DeTable<'i>, name: &str) -> Option<&'t DeTable<'i>> {
    of.get(name)?.get_ref().as_table()
}

fn dependencies(section: &DeTable<'_>, inherited: &[Dependency]) -> Vec<Dependency> {
    let dependencies = section.iter().map(|(name, value)| {
        let (name, value) = (name.get_ref().to_string(), value.get_ref());
        let said = value.get("package").and_then(|package| package.get_ref().as_str());
        let of_workspace = || {
            value.get("workspace")?;
            inherited.iter().find(|dependency| dependency.name == name).map(|dependency| dependency.package.as_str())
        };
        let package = said.or_else(of_workspace).unwrap_or(&name).to_owned();
        Dependency { name, package }
    });
    dependencies.collect()
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, path::PathBuf};

    use quote::ToTokens;

    use super::{Dependency, Manifest, Package, RESOURCE, RUNTIME, Wanted, of_workspace};

    fn found(manifest: &str, inherited: &[Dependency]) -> [String; 2] {
        let manifest = Manifest::parse(manifest, inherited).unwrap();
        let path = |wanted: &Wanted| wanted.within(&manifest).map(ToTokens::into_token_stream);
        [&RESOURCE, &RUNTIME].map(|wanted| path(wanted).unwrap_or_default().to_string().replace(' ', ""))
    }

    #[test]
    fn paths_follow_the_names_of_the_manifest() {
        for (manifest, expected) in [
            ("[dependencies]\nkoord = '0.1'", ["::koord", "::koord::runtime"]),
            ("[dependencies.koord]\nversion = '0.1'\nfeatures = ['runtime']", ["::koord", "::koord::runtime"]),
            ("dependencies.koord.version = '0.1'", ["::koord", "::koord::runtime"]),
            ("[dependencies]\nkoord-resource = '0.1'", ["::koord_resource", ""]),
            ("[dependencies]\nkoord = '0.1'\nkoord-resource = '0.1'", ["::koord_resource", "::koord::runtime"]),
            (
                "[dependencies]\nkoord-resource = { path = '..' }\nkoord-runtime = '0.1'",
                ["::koord_resource", "::koord_runtime"],
            ),
            ("[dependencies]\nmy-k = { package = 'koord', version = '0.1' }", ["::my_k", "::my_k::runtime"]),
            ("[dependencies]\nres = { package = 'koord-resource', version = '0.1' }", ["::res", ""]),
            ("[dependencies]\nkoord = { package = 'another', version = '1' }", ["", ""]),
            ("[target.'cfg(unix)'.dependencies]\nkoord = '0.1'", ["::koord", "::koord::runtime"]),
            ("[dev-dependencies]\nkoord = '0.1'", ["::koord", "::koord::runtime"]),
            ("[build-dependencies]\nkoord = '0.1'", ["::koord", "::koord::runtime"]),
            // The library is compiled without what its tests need.
            (
                "[dependencies]\nkoord = '0.1'\n[dev-dependencies]\nkoord-resource = '0.1'",
                ["::koord", "::koord::runtime"],
            ),
            ("[package]\nname = 'koord-resource'\n[dependencies]\nserde = '1'", ["::koord_resource", ""]),
            (
                "[package]\nname = 'koord-runtime'\n[dependencies]\nkoord-resource = '0.1'",
                ["::koord_resource", "::koord_runtime"],
            ),
            ("[package]\ndescription = '''\n[dependencies]\nkoord = \"0.1\"\n'''", ["", ""]),
            ("", ["", ""]),
        ] {
            assert_eq!(found(manifest, &[]), expected, "{manifest}");
        }
    }

    #[test]
    fn names_of_the_workspace_are_inherited() {
        let inherited = of_workspace("[workspace.dependencies]\nk = { package = 'koord', version = '0.1' }").unwrap();
        for (manifest, expected) in [
            ("[dependencies]\nk.workspace = true", ["::k", "::k::runtime"]),
            ("[dependencies]\nk = { workspace = true, features = ['runtime'] }", ["::k", "::k::runtime"]),
            ("[dependencies]\nk = '1'", ["", ""]),
        ] {
            assert_eq!(found(manifest, &inherited), expected, "{manifest}");
        }
        assert!(of_workspace("[workspace]").unwrap().is_empty());
        assert!(of_workspace("[package]\nname = 'alone'").is_none());
    }

    #[test]
    fn one_error_says_which_line_is_missing() {
        let package = |manifest| Package {
            file: PathBuf::new(),
            modified: None,
            manifest: Manifest::parse(manifest, &[]).unwrap(),
            said: RefCell::default(),
        };
        let says = |package: &Package, wanted| package.says_once(wanted).map(|error| error.to_string());
        let bare = package("[dependencies]\nserde = '1'");
        let first = says(&bare, &RESOURCE).unwrap();
        assert!(first.contains("`koord = \"") && first.contains("`crate = prelude::koord`"), "{first}");
        assert_eq!(says(&bare, &RESOURCE), None);
        let other = says(&bare, &RUNTIME).unwrap();
        assert!(other.contains("`koord = { version = \"") && other.contains("features = [\"runtime\"]"), "{other}");
        let without_runtime = package("[dependencies]\nkoord-resource = '0.1'");
        let of_runtime = says(&without_runtime, &RUNTIME).unwrap();
        assert!(of_runtime.contains("add `koord-runtime = \""), "{of_runtime}");
    }

    #[test]
    fn the_manifest_of_the_package_that_is_compiled_is_read() {
        let package = Package::current().unwrap();
        assert_eq!(package.manifest.package, "koord-macros");
        assert!(RESOURCE.within(&package.manifest).is_some());
    }
}
