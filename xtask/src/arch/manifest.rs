//! Reads the crates of `crates/` and their dependencies from their manifests.
//!
//! Renames, `workspace = true` and path dependencies are resolved: a [`CrateDependency`] has the name of the actual package.
//! What is allowed is decided in `arch.rs`. Cargo is not asked, so that a broken workspace can be checked, too.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use toml::{Table, Value};

/// One crate below `crates/`.
pub struct CrateManifest {
    /// The path of the file, `crates/<directory>/Cargo.toml`.
    pub path: String,
    pub directory: String,
    pub package: String,
    pub dependencies: Vec<CrateDependency>,
}

/// One line of a dependency table, resolved.
pub struct CrateDependency {
    pub package: String,
    pub kind: DependencyKind,
    /// Whether it is given by path and therefore part of this repository.
    pub is_local: bool,
    pub default_features: bool,
    pub features: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DependencyKind {
    Normal,
    Build,
    Dev,
}

const DEPENDENCY_SECTIONS: [(&str, DependencyKind); 3] = [
    ("dependencies", DependencyKind::Normal),
    ("build-dependencies", DependencyKind::Build),
    ("dev-dependencies", DependencyKind::Dev),
];

/// Reads every `crates/*/Cargo.toml`, sorted by directory.
pub fn read_manifests(root: &Path) -> Result<Vec<CrateManifest>> {
    let workspace = read_table(&root.join("Cargo.toml"))?;
    let shared_dependencies = find_table(&workspace, &["workspace", "dependencies"]).cloned().unwrap_or_default();
    let reader = ManifestReader { root, shared_dependencies: &shared_dependencies };

    let crates_dir = root.join("crates");
    let mut directories = Vec::new();
    for entry in fs::read_dir(&crates_dir).with_context(|| format!("cannot list {}", crates_dir.display()))? {
        let entry = entry?;
        // A directory without a manifest is not a crate: it may be left over from another branch.
        if entry.path().join("Cargo.toml").is_file() {
            directories.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    directories.sort();
    directories.into_iter().map(|directory| reader.read_manifest(directory)).collect()
}

struct ManifestReader<'a> {
    root: &'a Path,
    /// The `[workspace.dependencies]` of the root.
    shared_dependencies: &'a Table,
}

impl ManifestReader<'_> {
    fn read_manifest(&self, directory: String) -> Result<CrateManifest> {
        let crate_dir = self.root.join("crates").join(&directory);
        let manifest_table = read_table(&crate_dir.join("Cargo.toml"))?;
        // Dependencies for single platforms are in tables below `target` and count the same.
        let target_tables =
            find_table(&manifest_table, &["target"]).into_iter().flat_map(Table::values).filter_map(Value::as_table);

        let mut dependencies = Vec::new();
        for section_parent in std::iter::once(&manifest_table).chain(target_tables) {
            for (section, kind) in DEPENDENCY_SECTIONS {
                let entries = find_table(section_parent, &[section]).into_iter().flatten();
                dependencies.extend(entries.map(|(dependency_name, specification)| {
                    self.resolve_dependency(&crate_dir, dependency_name, specification, kind)
                }));
            }
        }
        let package = find_package_name(&manifest_table).unwrap_or_default();
        Ok(CrateManifest { path: format!("crates/{directory}/Cargo.toml"), directory, package, dependencies })
    }

    fn resolve_dependency(
        &self,
        crate_dir: &Path,
        dependency_name: &str,
        own_spec: &Value,
        kind: DependencyKind,
    ) -> CrateDependency {
        let is_inherited = own_spec.get("workspace").and_then(Value::as_bool) == Some(true);
        let shared_spec = if is_inherited { self.shared_dependencies.get(dependency_name) } else { None };
        // With `workspace = true` the package, the path and the default features come from the workspace.
        let (effective_spec, base_dir) = match shared_spec {
            Some(shared_spec) => (shared_spec, self.root),
            None => (own_spec, crate_dir),
        };
        let path = string_value(effective_spec, "path");
        // Without a `package` key the name of the dependency is that of its package.
        let declared_name = || string_value(effective_spec, "package").unwrap_or(dependency_name).to_owned();
        let default_features = |value: &Value| value.get("default-features").and_then(Value::as_bool);

        // The manifest behind a path knows the real name of the package; a name in the table may be an alias.
        CrateDependency {
            package: path.and_then(|path| read_package_name(&base_dir.join(path))).unwrap_or_else(declared_name),
            kind,
            is_local: path.is_some(),
            // A crate may turn default features on that the workspace has off, but not the other way round.
            default_features: default_features(effective_spec).unwrap_or(true)
                || default_features(own_spec) == Some(true),
            features: list_features(effective_spec)
                .chain(shared_spec.into_iter().flat_map(|_| list_features(own_spec)))
                .collect(),
        }
    }
}

fn list_features(value: &Value) -> impl Iterator<Item = String> {
    let feature_values = value.get("features").and_then(Value::as_array).into_iter().flatten();
    feature_values.filter_map(Value::as_str).map(str::to_owned)
}

fn string_value<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn read_package_name(package_dir: &Path) -> Option<String> {
    read_table(&package_dir.join("Cargo.toml")).ok().and_then(|table| find_package_name(&table))
}

fn find_package_name(manifest: &Table) -> Option<String> {
    find_table(manifest, &["package"])
        .and_then(|package| package.get("name"))
        .and_then(Value::as_str)
        .map(str::to_owned)
}

fn find_table<'a>(table: &'a Table, keys: &[&str]) -> Option<&'a Table> {
    keys.iter().try_fold(table, |table, key| table.get(*key)?.as_table())
}

fn read_table(toml_path: &Path) -> Result<Table> {
    let toml_text = fs::read_to_string(toml_path).with_context(|| format!("cannot read {}", toml_path.display()))?;
    toml_text.parse().with_context(|| format!("{} is not valid toml", toml_path.display()))
}
