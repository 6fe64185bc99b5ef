//! Reads the crates of `crates/` and their dependencies from their manifests.
//!
//! Renames, `workspace = true` and path dependencies are resolved: a [`CrateDependency`] has the name of the actual package.
//! What is allowed is decided in `arch.rs`. Cargo is not asked, so that a broken workspace can be checked, too.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use toml::{Table, Value};

/// One crate below `crates/`.
pub struct Manifest {
    /// The path of the file, `crates/<directory>/Cargo.toml`.
    pub path: String,
    pub folder: String,
    pub package: String,
    pub dependencies: Vec<Dependency>,
}

/// One line of a dependency table, resolved.
pub struct Dependency {
    pub package: String,
    pub kind: Kind,
    /// Whether it is given by path and therefore part of this repository.
    pub local: bool,
    pub default_features: bool,
    pub features: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Normal,
    Build,
    Dev,
}

const SECTIONS: [(&str, Kind); 3] =
    [("dependencies", Kind::Normal), ("build-dependencies", Kind::Build), ("dev-dependencies", Kind::Dev)];

/// Reads every `crates/*/Cargo.toml`, sorted by directory.
pub fn read_all(root: &Path) -> Result<Vec<Manifest>> {
    let workspace = read_table(&root.join("Cargo.toml"))?;
    let shared = table_at(&workspace, &["workspace", "dependencies"]).cloned().unwrap_or_default();
    let reader = Reader { root, shared: &shared };

    let crates = root.join("crates");
    let mut folders = Vec::new();
    for entry in fs::read_dir(&crates).with_context(|| format!("cannot list {}", crates.display()))? {
        let entry = entry?;
        // A directory without a manifest is not a crate: it may be left over from another branch.
        if entry.path().join("Cargo.toml").is_file() {
            folders.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    folders.sort();
    folders.into_iter().map(|folder| reader.manifest(folder)).collect()
}

struct Reader<'a> {
    root: &'a Path,
    /// The `[workspace.dependencies]` of the root.
    shared: &'a Table,
}

impl Reader<'_> {
    fn manifest(&self, folder: String) -> Result<Manifest> {
        let home = self.root.join("crates").join(&folder);
        let table = read_table(&home.join("Cargo.toml"))?;
        // Dependencies for single platforms are in tables below `target` and count the same.
        let platforms =
            table_at(&table, &["target"]).into_iter().flat_map(Table::values).filter_map(Value::as_table);

        let mut dependencies = Vec::new();
        for place in std::iter::once(&table).chain(platforms) {
            for (section, kind) in SECTIONS {
                let entries = table_at(place, &[section]).into_iter().flatten();
                dependencies.extend(entries.map(|(key, value)| self.dependency(&home, key, value, kind)));
            }
        }
        let package = package_name(&table).unwrap_or_default();
        Ok(Manifest { path: format!("crates/{folder}/Cargo.toml"), folder, package, dependencies })
    }

    fn dependency(&self, home: &Path, key: &str, own: &Value, kind: Kind) -> Dependency {
        let inherited = own.get("workspace").and_then(Value::as_bool) == Some(true);
        let shared = if inherited { self.shared.get(key) } else { None };
        // With `workspace = true` the package, the path and the default features come from the workspace.
        let (source, base) = match shared {
            Some(shared) => (shared, self.root),
            None => (own, home),
        };
        let path = text(source, "path");
        // Without a `package` key the name of the dependency is that of its package.
        let named = || text(source, "package").unwrap_or(key).to_owned();
        let default_features = |value: &Value| value.get("default-features").and_then(Value::as_bool);

        // The manifest behind a path knows the real name of the package; a name in the table may be an alias.
        Dependency {
            package: path.and_then(|path| package_in(&base.join(path))).unwrap_or_else(named),
            kind,
            local: path.is_some(),
            // A crate may turn default features on that the workspace has off, but not the other way round.
            default_features: default_features(source).unwrap_or(true) || default_features(own) == Some(true),
            features: features(source).chain(shared.into_iter().flat_map(|_| features(own))).collect(),
        }
    }
}

fn features(value: &Value) -> impl Iterator<Item = String> {
    let listed = value.get("features").and_then(Value::as_array).into_iter().flatten();
    listed.filter_map(Value::as_str).map(str::to_owned)
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn package_in(folder: &Path) -> Option<String> {
    read_table(&folder.join("Cargo.toml")).ok().and_then(|table| package_name(&table))
}

fn package_name(manifest: &Table) -> Option<String> {
    table_at(manifest, &["package"])
        .and_then(|package| package.get("name"))
        .and_then(Value::as_str)
        .map(str::to_owned)
}

fn table_at<'a>(table: &'a Table, keys: &[&str]) -> Option<&'a Table> {
    keys.iter().try_fold(table, |table, key| table.get(*key)?.as_table())
}

fn read_table(path: &Path) -> Result<Table> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.parse().with_context(|| format!("{} is not valid toml", path.display()))
}
