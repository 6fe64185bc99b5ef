//! Checks which crate may depend on which: one table of allowed dependencies, compared with the manifests.
//!
//! The purposes of that table are checked here, too: engine, workflows and guard stay without I/O, `unsafe` stays in supervise, and the
//! database stays in store. Modules inside a crate are not checked: only a crate boundary holds. Sizes and texts are in
//! [`crate::tidy`].

mod manifest;

use std::path::Path;

use anyhow::Result;

use crate::repository::RepositoryTree;
use crate::{RuleBreach, tokens};
use manifest::{CrateDependency, CrateManifest, DependencyKind};

/// One crate, the crates it may depend on (by directory), and the reason why no others.
struct CrateRule {
    directory: &'static str,
    package: &'static str,
    allowed_crates: &'static [&'static str],
    reason: &'static str,
}

const CRATE_RULES: &[CrateRule] = &[
    CrateRule {
        directory: "engine",
        package: "tribunal-engine",
        allowed_crates: &["json"],
        reason: "the engine knows no kind of run, and of ours uses JSON alone",
    },
    CrateRule {
        directory: "workflows",
        package: "tribunal-workflows",
        allowed_crates: &["engine", "json"],
        reason: "workflows decide over the engine, and of ours use nothing else but JSON",
    },
    CrateRule {
        directory: "json",
        package: "tribunal-json",
        allowed_crates: &["json-derive"],
        reason: "json knows none of the types that it writes and reads",
    },
    CrateRule {
        directory: "json-derive",
        package: "tribunal-json-derive",
        allowed_crates: &[],
        reason: "json-derive makes code, and runs only in the compiler",
    },
    CrateRule {
        directory: "guard",
        package: "tribunal-guard",
        allowed_crates: &[],
        reason: "guard judges words, and depends on nothing of ours",
    },
    CrateRule {
        directory: "bmad",
        package: "tribunal-bmad",
        allowed_crates: &["engine", "workflows", "json"],
        reason: "bmad turns text into types of engine and workflows and JSON, nothing else",
    },
    CrateRule {
        directory: "agents",
        package: "tribunal-agents",
        allowed_crates: &["engine", "workflows", "json"],
        reason: "agents translates for workflows, starts nothing and keeps nothing",
    },
    CrateRule {
        directory: "supervise",
        package: "tribunal-supervise",
        allowed_crates: &[],
        reason: "supervise knows processes, and nothing of ours",
    },
    CrateRule {
        directory: "store",
        package: "tribunal-store",
        allowed_crates: &["engine", "workflows"],
        reason: "store keeps what engine and workflows name, and knows no other crate",
    },
    CrateRule {
        directory: "report",
        package: "tribunal-report",
        allowed_crates: &["engine", "workflows", "json"],
        reason: "report sees journal events, workflows and JSON, nothing else",
    },
    CrateRule {
        directory: "runner",
        package: "tribunal-runner",
        allowed_crates: &["engine", "workflows", "json", "guard", "bmad", "agents", "supervise", "store"],
        reason: "runner acts, and does not show",
    },
    CrateRule {
        directory: "testkit",
        package: "tribunal-testkit",
        allowed_crates: &["engine", "workflows", "agents"],
        reason: "testkit scripts agents for the tests of every crate, so it stays below them",
    },
    CrateRule {
        directory: "cli",
        package: "tribunal",
        allowed_crates: &[
            "engine",
            "workflows",
            "json",
            "guard",
            "bmad",
            "agents",
            "supervise",
            "store",
            "report",
            "runner",
        ],
        reason: "the binary wires the crates that ship",
    },
];

const NOT_IN_TABLE: &str = "not in the table of crates: add it to xtask/src/arch.rs with its arrows";
const CLI_IS_NO_DEPENDENCY: &str = "nothing depends on the binary";
const TESTKIT_IS_FOR_TESTS: &str = "testkit is for tests: as a dev-dependency only";
const DATABASE_IS_FOR_STORE: &str = "store opens the database, alone";

/// A crate that cannot do I/O, and the packages it may use: none of them does I/O without its default features.
struct PureCrate {
    directory: &'static str,
    allowed_packages: &'static [&'static str],
}

const PURE_CRATES: &[PureCrate] = &[
    PureCrate { directory: "engine", allowed_packages: &["serde", "serde_json", "thiserror", "blake3"] },
    PureCrate {
        directory: "workflows",
        allowed_packages: &["serde", "serde_json", "thiserror", "futures-util", "blake3"],
    },
    PureCrate { directory: "json", allowed_packages: &["schemars", "serde", "serde_json", "thiserror"] },
    PureCrate { directory: "guard", allowed_packages: &[] },
];

impl PureCrate {
    fn find_by_dir(directory: &str) -> Option<&'static PureCrate> {
        PURE_CRATES.iter().find(|pure_crate| pure_crate.directory == directory)
    }

    fn root_file(&self) -> String {
        format!("crates/{}/src/lib.rs", self.directory)
    }

    /// The reason why this crate may not have a dependency.
    fn refusal_text(&self) -> String {
        let PureCrate { directory, allowed_packages } = self;
        match allowed_packages {
            [] => format!("{directory} cannot do i/o: it uses nothing from outside"),
            allowed_packages => {
                format!("{directory} cannot do i/o: from outside it uses only {}", allowed_packages.join(", "))
            }
        }
    }

    /// Describes how an allowed dependency brings the standard library in all the same; `None` if it does not.
    fn find_feature_breach(&self, dependency: &CrateDependency) -> Option<String> {
        let (directory, package_name) = (self.directory, &dependency.package);
        let remedy = format!("{directory} is without std: write default-features = false where its version stands");
        // Dev-dependencies may use the standard library: the crate itself is still compiled without it.
        if dependency.kind == DependencyKind::Dev {
            None
        } else if dependency.default_features {
            Some(format!("tribunal-{directory} depends on {package_name} with default features on ({remedy})"))
        } else {
            let std_feature =
                dependency.features.iter().find(|feature| ["std", "default"].contains(&feature.as_str()))?;
            Some(format!(
                "tribunal-{directory} depends on {package_name} with feature {std_feature:?} ({directory} is without std: take it out)"
            ))
        }
    }
}

/// Returns every breach of the architecture below `root`, sorted.
pub fn check_architecture(root: &Path) -> Result<Vec<RuleBreach>> {
    check_repository(root, &RepositoryTree::read_repository(root)?)
}

pub(crate) fn check_repository(root: &Path, repository: &RepositoryTree) -> Result<Vec<RuleBreach>> {
    // A source that cannot be parsed cannot be checked, so it is a breach itself.
    let mut breaches = repository.unreadable.clone();
    for manifest in &manifest::read_manifests(root)? {
        check_manifest(manifest, &mut breaches);
    }
    check_sources(repository, &mut breaches);
    breaches.sort();
    breaches.dedup();
    Ok(breaches)
}

fn check_manifest(manifest: &CrateManifest, breaches: &mut Vec<RuleBreach>) {
    let mut breach = |message: String| breaches.push(RuleBreach::in_file(&manifest.path, message));
    // A new crate must be entered in the table first; without its row nothing can be checked.
    let Some(rule) = CRATE_RULES.iter().find(|rule| rule.directory == manifest.directory) else {
        return breach(NOT_IN_TABLE.to_owned());
    };
    // The dependencies of other crates name the package, so a renamed one would escape the table.
    if manifest.package != rule.package {
        breach(format!(
            "this package is called {:?}, in the table of xtask/src/arch.rs {:?}",
            manifest.package, rule.package
        ));
    }
    for dependency in &manifest.dependencies {
        if let Some(reason) = find_refusal(rule, dependency) {
            let verb = if dependency.kind == DependencyKind::Dev { "dev-depend" } else { "depend" };
            breach(format!("{} may not {verb} on {} ({reason})", rule.package, dependency.package));
        } else if let Some(pure_crate) = PureCrate::find_by_dir(rule.directory) {
            pure_crate.find_feature_breach(dependency).into_iter().for_each(&mut breach);
        }
    }
}

/// The reason why a crate may not have this dependency; `None` if it may.
fn find_refusal(crate_rule: &CrateRule, dependency: &CrateDependency) -> Option<String> {
    let is_dev = dependency.kind == DependencyKind::Dev;
    // A package outside the table is foreign or unknown, and other rules apply to it.
    let Some(target_rule) = CRATE_RULES.iter().find(|rule| rule.package == dependency.package) else {
        return find_outside_refusal(crate_rule, dependency);
    };
    // Every crate but the engine may use the test kit for its tests, so that case comes before the table.
    let reason = match target_rule.directory {
        "testkit" if is_dev && crate_rule.directory != "engine" => return None,
        target_dir if crate_rule.allowed_crates.contains(&target_dir) => return None,
        "cli" => CLI_IS_NO_DEPENDENCY,
        "testkit" if crate_rule.directory != "engine" => TESTKIT_IS_FOR_TESTS,
        _ => crate_rule.reason,
    };
    Some(reason.to_owned())
}

/// The reason why a crate may not depend on a package that is not in the table; `None` if it may.
fn find_outside_refusal(crate_rule: &CrateRule, dependency: &CrateDependency) -> Option<String> {
    let package_name = dependency.package.as_str();
    // A local package outside the table could bring any dependency in.
    if dependency.is_local {
        Some(NOT_IN_TABLE.to_owned())
    } else if package_name == "rusqlite" && crate_rule.directory != "store" {
        Some(DATABASE_IS_FOR_STORE.to_owned())
    } else {
        let pure_crate =
            PureCrate::find_by_dir(crate_rule.directory).filter(|_| dependency.kind != DependencyKind::Dev)?;
        (!pure_crate.allowed_packages.contains(&package_name)).then(|| pure_crate.refusal_text())
    }
}

fn check_sources(repository: &RepositoryTree, breaches: &mut Vec<RuleBreach>) {
    for source in &repository.sources {
        let mut breach = |line, message: &str| breaches.push(RuleBreach::at_line(&source.path, line, message));
        // The search is by tokens, so `unsafe` inside macros is found and in comments it is not.
        if !source.path.starts_with("crates/supervise/") {
            for line in tokens::find_word_lines(&source.tokens, &["unsafe"]) {
                breach(line, "`unsafe` outside of crates/supervise (supervise holds the only `unsafe`)");
            }
        }
    }
    for pure_crate in PURE_CRATES {
        check_purity(pure_crate, repository, breaches);
    }
}

fn check_purity(pure_crate: &PureCrate, repository: &RepositoryTree, breaches: &mut Vec<RuleBreach>) {
    let (directory, root_file) = (pure_crate.directory, pure_crate.root_file());
    let crate_prefix = format!("crates/{directory}/");
    for source in repository.sources.iter().filter(|source| source.path.starts_with(&crate_prefix)) {
        for line in tokens::find_word_lines(&source.tokens, &["extern", "crate", "std"]) {
            let message =
                format!("`extern crate std` in {directory} ({directory} cannot do i/o, not even in its tests)");
            breaches.push(RuleBreach::at_line(&source.path, line, message));
        }
        // The attribute must be unconditional: with `cfg_attr` the crate could use the standard library in some builds.
        let is_no_std = || source.syntax.attrs.iter().any(|attribute| attribute.path().is_ident("no_std"));
        if source.path == root_file && !is_no_std() {
            let message = format!("`#![no_std]` is missing ({directory} cannot do i/o)");
            breaches.push(RuleBreach::in_file(&root_file, message));
        }
    }
    // A missing root file is reported here, because the loop above only sees existing files.
    let has_file = |wanted_path: &str| repository.files.iter().any(|path| path == wanted_path);
    if has_file(&format!("{crate_prefix}Cargo.toml")) && !has_file(&root_file) {
        breaches.push(RuleBreach::in_file(&root_file, "this file is missing (it says `#![no_std]`)"));
    }
}
