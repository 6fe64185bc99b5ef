//! Whether a project is a greenfield or a brownfield project, and whether existing code is documented.
//!
//! Files are counted by their names and not opened. The walk is bounded: a project with more directories than that is not
//! new.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{config::Config, shelf::Shelf};

/// More source files than this make a brownfield project.
const FEW: usize = 10;
/// How many names of a project are looked at.
const MOST_NAMES: usize = 20_000;
const DEEPEST: usize = 12;

/// Directories that never hold the project's own source. Directories that begin with a dot are skipped, too.
const SKIPPED: [&str; 16] = [
    "node_modules",
    "target",
    "dist",
    "build",
    "out",
    "vendor",
    "venv",
    "env",
    "__pycache__",
    "coverage",
    "_bmad",
    "_bmad-output",
    "bmad",
    "bower_components",
    "Pods",
    "DerivedData",
];

const SOURCE: [&str; 40] = [
    "rs", "py", "js", "jsx", "ts", "tsx", "mjs", "cjs", "go", "java", "kt", "kts", "scala", "c", "h", "cc",
    "cpp", "hpp", "cs", "fs", "swift", "m", "rb", "php", "ex", "exs", "erl", "hs", "clj", "dart", "lua",
    "pl", "r", "jl", "sh", "sql", "vue", "svelte", "zig", "nim",
];

const FOLDERS: [&str; 3] = ["src", "lib", "app"];

const MANIFESTS: [&str; 20] = [
    "package.json",
    "pyproject.toml",
    "setup.py",
    "requirements.txt",
    "Cargo.toml",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "Gemfile",
    "composer.json",
    "mix.exs",
    "Package.swift",
    "pubspec.yaml",
    "CMakeLists.txt",
    "Makefile",
    "deno.json",
    "stack.yaml",
    "build.sbt",
    "project.clj",
];

/// What existed before the project used BMAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ground {
    Greenfield,
    Brownfield,
}

/// The field type of a project with the evidence for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Field {
    pub ground: Ground,
    /// Whether the existing code is documented. A greenfield project has nothing to document.
    pub documented: bool,
    /// What was found, one sentence each.
    pub reasons: Vec<String>,
}

impl Field {
    /// Whether the project has to be documented before it is planned: a brownfield project without documentation.
    pub fn needs_documenting(&self) -> bool {
        self.ground == Ground::Brownfield && !self.documented
    }
}

/// Detects the field type by the files of the project.
pub fn read(shelf: &dyn Shelf, config: &Config) -> Field {
    let top = shelf.names("");
    let mut reasons = Vec::new();
    let sources = sources(shelf, config);
    // Either sign is enough: many source files, or a source directory with a build manifest.
    let many = sources.len() > FEW;
    if many {
        reasons.push(format!("there are more than {FEW} source files, {} among them", sources[0]));
    }
    // A directory `src` alone may hold anything, and a manifest alone may be the start of a new project.
    let folder = FOLDERS.iter().find(|folder| top.contains(&format!("{folder}/")));
    let manifest = MANIFESTS.iter().find(|manifest| top.iter().any(|name| name == *manifest));
    if let (Some(folder), Some(manifest)) = (folder, manifest) {
        reasons.push(format!("there are a folder `{folder}` and a `{manifest}`"));
    }
    let ground = if reasons.is_empty() { Ground::Greenfield } else { Ground::Brownfield };
    if ground == Ground::Greenfield {
        reasons.push(match sources.len() {
            0 => "there is no source file".into(),
            1 => "there is only one source file".into(),
            few => format!("there are only {few} source files"),
        });
    }
    let document = document(shelf, config);
    match &document {
        Some(document) => reasons.push(format!("`{document}` says what is there")),
        None if ground == Ground::Brownfield => reasons.push("nothing says what is there".into()),
        None => {}
    }
    Field { ground, documented: document.is_some(), reasons }
}

/// The first source files from the top down, at most one more than [`FEW_FILES`], since more make no difference.
fn sources(shelf: &dyn Shelf, config: &Config) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = MOST_NAMES;
    // Breadth first: source near the top is found before the budget for names is spent.
    let mut folders = VecDeque::from([(String::new(), 0)]);
    while let Some((folder, depth)) = folders.pop_front() {
        for name in shelf.names(&folder) {
            if left == 0 || found.len() > FEW {
                return found;
            }
            left -= 1;
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            match path.strip_suffix('/') {
                Some(inner) => {
                    let own = name.trim_end_matches('/');
                    let skipped =
                        // The output folder may have any name, so the list above cannot know it.
                        own.starts_with('.') || SKIPPED.contains(&own) || inner == config.folders.output;
                    if !skipped && depth < DEEPEST {
                        folders.push_back((inner.to_string(), depth + 1));
                    }
                }
                None if is_source(&name) => found.push(path),
                None => {}
            }
        }
    }
    found
}

fn is_source(name: &str) -> bool {
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    // `vite.config.ts` is written by a tool.
    !stem.is_empty() && !stem.ends_with(".config") && SOURCE.contains(&ending.to_lowercase().as_str())
}

/// The document that document-project or its successors write: an index or an overview in the folder of project knowledge, or
/// the context for agents. A README alone does not count.
fn document(shelf: &dyn Shelf, config: &Config) -> Option<String> {
    const INDEXES: [&str; 6] = [
        "index.md",
        "project-overview.md",
        "source-tree-analysis.md",
        "development-guide.md",
        "brownfield-architecture.md",
        "project-documentation.md",
    ];
    const CONTEXT: &str = "project-context.md";
    let folders = &config.folders;
    let places = [
        (folders.knowledge.as_str(), &INDEXES[..]),
        (folders.knowledge.as_str(), &[CONTEXT][..]),
        (folders.output.as_str(), &[CONTEXT][..]),
        (folders.planning.as_str(), &[CONTEXT][..]),
        ("", &[CONTEXT][..]),
    ];
    places.into_iter().find_map(|(folder, names)| {
        let there = shelf.names(folder);
        let name = names.iter().find(|name| there.iter().any(|there| there.eq_ignore_ascii_case(name)))?;
        Some(if folder.is_empty() { (*name).to_string() } else { format!("{folder}/{name}") })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config, shelf::Kept};

    fn drawn(files: &[&str]) -> String {
        let shelf = Kept::with(files.iter().map(|path| (*path, "")));
        let field = read(&shelf, &config::read(&shelf));
        let needs = if field.needs_documenting() { ", document it first" } else { "" };
        format!("{:?}{needs}: {}", field.ground, field.reasons.join("; "))
    }

    #[test]
    fn a_field_is_told_by_its_files() {
        let many: Vec<String> = (0..11).map(|number| format!("pkg/a/f{number}.py")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let skipped: Vec<String> =
            ["node_modules", "target", ".venv", "dist", "_bmad/scripts", "_bmad-output"]
                .iter()
                .flat_map(|folder| (0..11).map(move |number| format!("{folder}/f{number}.js")))
                .collect();
        let skipped: Vec<&str> = skipped.iter().map(String::as_str).collect();
        let all = [
            drawn(&[]),
            drawn(&["README.md", "docs/notes.md", "main.rs"]),
            drawn(&skipped),
            drawn(&many[..10]),
            drawn(&many),
            drawn(&["src/main.rs", "Cargo.toml"]),
            drawn(&["src/main.rs", "docs/Cargo.toml"]),
            drawn(&["lib/x.rb", "Gemfile", "docs/index.md"]),
            drawn(&["app/x.rb", "Gemfile", "_bmad-output/project-context.md"]),
        ];
        insta::assert_snapshot!(all.join("\n"));
    }

    #[test]
    fn a_huge_project_is_not_walked_to_its_end() {
        struct Endless;
        impl Shelf for Endless {
            fn read(&self, _: &str) -> Result<Option<String>, crate::shelf::Unreadable> {
                Ok(None)
            }
            fn names(&self, _: &str) -> Vec<String> {
                (0..50).map(|number| format!("d{number}/")).collect()
            }
        }
        let field = read(&Endless, &Config::default());
        assert_eq!(field.ground, Ground::Greenfield);
    }
}
