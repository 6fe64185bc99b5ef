//! Whether a project is a greenfield or a brownfield project, and whether existing code is documented.
//!
//! Files are counted by their names and not opened. The walk is bounded by the number of names and by the depth, since a project
//! may hold anything.

use std::collections::VecDeque;

use tribunal_json::{Serialize, schemars};

use crate::{config::BmadConfig, project_files::ProjectFiles};

/// More source files than this make a brownfield project.
const FEW_FILES: usize = 10;
/// How many names of a project are looked at.
const MAX_NAMES: usize = 20_000;
const MAX_DEPTH: usize = 12;

/// Directories that never hold the project's own source. Directories that begin with a dot are skipped, too.
const SKIPPED_DIRS: [&str; 16] = [
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

const SOURCE_EXTENSIONS: [&str; 40] = [
    "rs", "py", "js", "jsx", "ts", "tsx", "mjs", "cjs", "go", "java", "kt", "kts", "scala", "c", "h", "cc", "cpp",
    "hpp", "cs", "fs", "swift", "m", "rb", "php", "ex", "exs", "erl", "hs", "clj", "dart", "lua", "pl", "r", "jl",
    "sh", "sql", "vue", "svelte", "zig", "nim",
];

const SOURCE_DIRS: [&str; 3] = ["src", "lib", "app"];

const BUILD_MANIFESTS: [&str; 20] = [
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FieldType {
    Greenfield,
    Brownfield,
}

/// The field type of a project with the evidence for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ProjectField {
    pub ground: FieldType,
    /// Whether the existing code is documented. A greenfield project has nothing to document.
    pub documented: bool,
    /// What was found, one sentence each.
    pub reasons: Vec<String>,
}

impl ProjectField {
    /// Whether the project has to be documented before it is planned: a brownfield project without documentation.
    pub fn needs_documenting(&self) -> bool {
        self.ground == FieldType::Brownfield && !self.documented
    }
}

/// Detects the field type by the files of the project.
pub fn read_field(project_files: &dyn ProjectFiles, config: &BmadConfig) -> ProjectField {
    let top_level_names = project_files.list_names("");
    let mut reasons = Vec::new();
    let source_files = find_sources(project_files, config);
    // Either sign is enough: many source files, or a source directory with a build manifest.
    let has_many_sources = source_files.len() > FEW_FILES;
    if has_many_sources {
        reasons.push(format!("more than {FEW_FILES} source files, for example {}", source_files[0]));
    }
    // A directory `src` alone may hold anything, and a manifest alone may be the start of a new project.
    let source_directory =
        SOURCE_DIRS.iter().find(|source_directory| top_level_names.contains(&format!("{source_directory}/")));
    let build_manifest = BUILD_MANIFESTS
        .iter()
        .find(|build_manifest| top_level_names.iter().any(|entry_name| entry_name == *build_manifest));
    if let (Some(source_directory), Some(build_manifest)) = (source_directory, build_manifest) {
        reasons.push(format!("found a `{source_directory}` directory and `{build_manifest}`"));
    }
    let field_type = if reasons.is_empty() { FieldType::Greenfield } else { FieldType::Brownfield };
    if field_type == FieldType::Greenfield {
        reasons.push(match source_files.len() {
            0 => "no source files".into(),
            1 => "only one source file".into(),
            few => format!("only {few} source files"),
        });
    }
    let documentation = find_documentation(project_files, config);
    match &documentation {
        Some(documentation) => reasons.push(format!("documented in `{documentation}`")),
        None if field_type == FieldType::Brownfield => reasons.push("no documentation found".into()),
        None => {}
    }
    ProjectField { ground: field_type, documented: documentation.is_some(), reasons }
}

/// The first source files from the top down, at most one more than [`FEW_FILES`], since more make no difference.
fn find_sources(project_files: &dyn ProjectFiles, config: &BmadConfig) -> Vec<String> {
    let mut source_paths = Vec::new();
    let mut names_left = MAX_NAMES;
    // The walk is breadth first, so that source near the top is found before the budget for names is spent.
    let mut pending_directories = VecDeque::from([(String::new(), 0)]);
    while let Some((directory, depth)) = pending_directories.pop_front() {
        for entry_name in project_files.list_names(&directory) {
            if names_left == 0 || source_paths.len() > FEW_FILES {
                return source_paths;
            }
            names_left -= 1;
            let entry_path =
                if directory.is_empty() { entry_name.clone() } else { format!("{directory}/{entry_name}") };
            match entry_path.strip_suffix('/') {
                Some(subdirectory) => {
                    let directory_name = entry_name.trim_end_matches('/');
                    let skipped =
                        // The output folder may have any name, so the list above cannot know it.
                        directory_name.starts_with('.') || SKIPPED_DIRS.contains(&directory_name) || subdirectory == config.folders.output;
                    if !skipped && depth < MAX_DEPTH {
                        pending_directories.push_back((subdirectory.to_string(), depth + 1));
                    }
                }
                None if is_source_file(&entry_name) => source_paths.push(entry_path),
                None => {}
            }
        }
    }
    source_paths
}

fn is_source_file(file_name: &str) -> bool {
    let Some((stem, extension)) = file_name.rsplit_once('.') else { return false };
    // A file such as `vite.config.ts` configures a tool and is no source of the product.
    !stem.is_empty() && !stem.ends_with(".config") && SOURCE_EXTENSIONS.contains(&extension.to_lowercase().as_str())
}

/// The document that document-project or its successors write: an index or an overview in the folder of project knowledge, or
/// the context for agents. A README alone does not count.
fn find_documentation(project_files: &dyn ProjectFiles, config: &BmadConfig) -> Option<String> {
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
    let search_places = [
        (folders.knowledge.as_str(), &INDEXES[..]),
        (folders.knowledge.as_str(), &[CONTEXT][..]),
        (folders.output.as_str(), &[CONTEXT][..]),
        (folders.planning.as_str(), &[CONTEXT][..]),
        ("", &[CONTEXT][..]),
    ];
    search_places.into_iter().find_map(|(directory, document_names)| {
        let existing_names = project_files.list_names(directory);
        let document_name = document_names.iter().find(|document_name| {
            existing_names.iter().any(|existing_name| existing_name.eq_ignore_ascii_case(document_name))
        })?;
        Some(if directory.is_empty() { (*document_name).to_string() } else { format!("{directory}/{document_name}") })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config, project_files::InMemoryFiles};

    fn render_field(files: &[&str]) -> String {
        let project_files = InMemoryFiles::from_files(files.iter().map(|path| (*path, "")));
        let project_field = read_field(&project_files, &config::read_config(&project_files));
        let documenting_note = if project_field.needs_documenting() { ", document it first" } else { "" };
        format!("{:?}{documenting_note}: {}", project_field.ground, project_field.reasons.join("; "))
    }

    #[test]
    fn the_field_type_is_detected_from_the_files() {
        let many_sources: Vec<String> = (0..11).map(|index| format!("pkg/a/f{index}.py")).collect();
        let many_sources: Vec<&str> = many_sources.iter().map(String::as_str).collect();
        let skipped: Vec<String> = ["node_modules", "target", ".venv", "dist", "_bmad/scripts", "_bmad-output"]
            .iter()
            .flat_map(|directory| (0..11).map(move |index| format!("{directory}/f{index}.js")))
            .collect();
        let skipped: Vec<&str> = skipped.iter().map(String::as_str).collect();
        let rendered_fields = [
            render_field(&[]),
            render_field(&["README.md", "docs/notes.md", "main.rs"]),
            render_field(&skipped),
            render_field(&many_sources[..10]),
            render_field(&many_sources),
            render_field(&["src/main.rs", "Cargo.toml"]),
            render_field(&["src/main.rs", "docs/Cargo.toml"]),
            render_field(&["lib/x.rb", "Gemfile", "docs/index.md"]),
            render_field(&["app/x.rb", "Gemfile", "_bmad-output/project-context.md"]),
        ];
        insta::assert_snapshot!(rendered_fields.join("\n"));
    }

    #[test]
    fn a_huge_project_is_not_walked_completely() {
        struct EndlessFiles;
        impl ProjectFiles for EndlessFiles {
            fn read_file(&self, _: &str) -> Result<Option<String>, crate::project_files::UnreadableFile> {
                Ok(None)
            }
            fn list_names(&self, _: &str) -> Vec<String> {
                (0..50).map(|number| format!("d{number}/")).collect()
            }
        }
        let project_field = read_field(&EndlessFiles, &BmadConfig::default());
        assert_eq!(project_field.ground, FieldType::Greenfield);
    }
}
