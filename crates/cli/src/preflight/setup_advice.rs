//! Suggests how a fresh clone of the project is set up: which commands install its dependencies (`workspace.setup`), and which
//! ignored files it needs (`workspace.seed`). Names go in, and suggestions come out; nothing is read and nothing is started.

use std::collections::{BTreeMap, BTreeSet};

/// The names of files that the project has, as far as they matter here.
#[derive(Debug, Default)]
pub(crate) struct ProjectListing {
    pub root_names: BTreeSet<String>,
    /// The names of files in each directory of the root.
    pub names_by_directory: BTreeMap<String, BTreeSet<String>>,
}

/// A command for `workspace.setup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetupStep {
    /// The path of the file that the suggestion follows from.
    pub lock_file: String,
    pub command: String,
    pub note: Option<&'static str>,
}

/// An ignored file that a fresh clone lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeedOption {
    pub path: String,
    /// Whether it is likely to hold secrets. Such a file is named, but the user has to decide.
    pub is_secret: bool,
}

/// The tools of one language. The first lock file that is there decides: a project that changed its tool often keeps the
/// lock file of the old one.
struct Ecosystem {
    lock_files: &'static [(&'static str, &'static str)],
    note: Option<&'static str>,
}

const YARN_LOCK: &str = "yarn.lock";
/// The settings of Yarn 2 and later, which has another flag.
const YARN_SETTINGS: &str = ".yarnrc.yml";
const YARN_MODERN_COMMAND: &str = "yarn install --immutable";

const ECOSYSTEMS: [Ecosystem; 8] = [
    Ecosystem {
        lock_files: &[
            ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
            (YARN_LOCK, "yarn install --frozen-lockfile"),
            ("bun.lock", "bun install --frozen-lockfile"),
            ("bun.lockb", "bun install --frozen-lockfile"),
            ("package-lock.json", "npm ci"),
            ("npm-shrinkwrap.json", "npm ci"),
        ],
        note: None,
    },
    Ecosystem {
        lock_files: &[
            ("uv.lock", "uv sync --frozen"),
            ("poetry.lock", "poetry install --no-interaction"),
            ("Pipfile.lock", "pipenv sync"),
            ("requirements.txt", "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"),
        ],
        note: None,
    },
    Ecosystem {
        lock_files: &[("Cargo.lock", "cargo fetch --locked")],
        note: Some(
            "builds start from nothing in each clone; CARGO_TARGET_DIR, or `target` in workspace.seed, saves that time",
        ),
    },
    Ecosystem { lock_files: &[("go.sum", "go mod download")], note: None },
    Ecosystem { lock_files: &[("Gemfile.lock", "bundle install")], note: None },
    Ecosystem { lock_files: &[("composer.lock", "composer install --no-interaction")], note: None },
    Ecosystem { lock_files: &[("mix.lock", "mix deps.get")], note: None },
    Ecosystem { lock_files: &[("pubspec.lock", "dart pub get --enforce-lockfile")], note: None },
];

/// Directories whose lock files say nothing about the project's own build.
const OTHER_DIRECTORIES: [&str; 10] =
    ["node_modules", "vendor", "target", "dist", "build", "docs", "doc", "examples", "tests", "fixtures"];

/// Files that tools look for and that are often ignored.
const NEEDED_FILES: [&str; 6] =
    [".npmrc", ".tool-versions", ".nvmrc", ".python-version", ".ruby-version", "local.properties"];

/// Suggests the commands for `workspace.setup`, language by language. Directories of the root count only for languages that
/// the root does not have: with one lock file at the root they are parts of one workspace.
pub(crate) fn suggest_setup(listing: &ProjectListing) -> Vec<SetupStep> {
    let mut steps = Vec::new();
    for ecosystem in &ECOSYSTEMS {
        if let Some(root_step) = find_step(ecosystem, &listing.root_names) {
            steps.push(root_step);
            continue;
        }
        for (directory, names) in &listing.names_by_directory {
            // A name that a shell would take apart is left out; the user can add it.
            let is_plain =
                directory.chars().all(|character| character.is_ascii_alphanumeric() || "._-".contains(character));
            let is_own = !directory.starts_with(['.', '-']) && !OTHER_DIRECTORIES.contains(&directory.as_str());
            let Some(step) = find_step(ecosystem, names).filter(|_| is_plain && is_own) else { continue };
            steps.push(SetupStep {
                lock_file: format!("{directory}/{}", step.lock_file),
                command: format!("(cd {directory} && {})", step.command),
                ..step
            });
        }
    }
    steps
}

fn find_step(ecosystem: &Ecosystem, names: &BTreeSet<String>) -> Option<SetupStep> {
    let (lock_file, command) = ecosystem.lock_files.iter().find(|(lock_file, _)| names.contains(*lock_file))?;
    let is_modern_yarn = *lock_file == YARN_LOCK && names.contains(YARN_SETTINGS);
    let command = if is_modern_yarn { YARN_MODERN_COMMAND } else { command };
    Some(SetupStep { lock_file: (*lock_file).into(), command: command.into(), note: ecosystem.note })
}

/// The names of the root that are worth asking git about: whether it ignores them.
pub(crate) fn find_seed_candidates(root_names: &BTreeSet<String>) -> Vec<String> {
    let is_candidate = |name: &&String| NEEDED_FILES.contains(&name.as_str()) || is_environment_file(name);
    root_names.iter().filter(is_candidate).cloned().collect()
}

/// Suggests what to seed, given which candidates git ignores. Directories that the set-up makes are never suggested.
pub(crate) fn suggest_seeds(candidates: &[String], ignored: &BTreeSet<String>) -> Vec<SeedOption> {
    let ignored_candidates = candidates.iter().filter(|candidate| ignored.contains(*candidate));
    ignored_candidates
        .map(|path| SeedOption { path: path.clone(), is_secret: is_environment_file(path) || path == ".npmrc" })
        .collect()
}

/// `.env`, `.env.local` and the like, but not the examples of them.
fn is_environment_file(name: &str) -> bool {
    let suffix = name.strip_prefix(".env");
    suffix.is_some_and(|suffix| {
        (suffix.is_empty() || suffix.starts_with('.'))
            && ![".example", ".sample", ".template", ".dist"].iter().any(|ending| suffix.ends_with(ending))
    })
}

/// Renders the lines for `tribunal.yaml`; empty if there is nothing to set. Files with secrets are not among them.
pub(crate) fn render_settings_lines(steps: &[SetupStep], seeds: &[SeedOption]) -> Vec<String> {
    let commands: Vec<&str> = steps.iter().map(|step| step.command.as_str()).collect();
    let seed_paths: Vec<&str> = seeds.iter().filter(|seed| !seed.is_secret).map(|seed| seed.path.as_str()).collect();
    let mut lines = Vec::new();
    for (setting_name, values) in [("setup", commands), ("seed", seed_paths)] {
        if !values.is_empty() {
            lines.push(format!("  {setting_name}:"));
            lines.extend(values.iter().map(|value| format!("    - {value}")));
        }
    }
    if !lines.is_empty() {
        lines.insert(0, "workspace:".into());
    }
    lines
}

#[cfg(test)]
mod tests {
    use tribunal_bmad::yaml;

    use super::*;

    fn list_names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).into()).collect()
    }

    fn commands_for(root_names: &[&str], nested: &[(&str, &[&str])]) -> Vec<String> {
        let names_by_directory =
            nested.iter().map(|(directory, names)| ((*directory).to_string(), list_names(names))).collect();
        let listing = ProjectListing { root_names: list_names(root_names), names_by_directory };
        suggest_setup(&listing).into_iter().map(|step| step.command).collect()
    }

    #[test]
    fn each_lock_file_has_its_command() {
        for (lock_file, command) in [
            ("package-lock.json", "npm ci"),
            ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
            ("yarn.lock", "yarn install --frozen-lockfile"),
            ("bun.lock", "bun install --frozen-lockfile"),
            ("bun.lockb", "bun install --frozen-lockfile"),
            ("uv.lock", "uv sync --frozen"),
            ("poetry.lock", "poetry install --no-interaction"),
            ("Pipfile.lock", "pipenv sync"),
            ("requirements.txt", "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"),
            ("Cargo.lock", "cargo fetch --locked"),
            ("go.sum", "go mod download"),
            ("Gemfile.lock", "bundle install"),
            ("composer.lock", "composer install --no-interaction"),
            ("mix.lock", "mix deps.get"),
        ] {
            assert_eq!(commands_for(&[lock_file, "README.md"], &[]), [command]);
        }
        assert_eq!(commands_for(&["yarn.lock", ".yarnrc.yml"], &[]), ["yarn install --immutable"]);
        assert_eq!(commands_for(&["README.md", "package.json"], &[]), [""; 0]);
    }

    #[test]
    fn one_tool_of_a_language_is_enough_and_languages_add_up() {
        let root_names = ["package-lock.json", "pnpm-lock.yaml", "uv.lock", "requirements.txt", "Cargo.lock"];
        let expected = ["pnpm install --frozen-lockfile", "uv sync --frozen", "cargo fetch --locked"];
        assert_eq!(commands_for(&root_names, &[]), expected);
    }

    #[test]
    fn directories_count_for_tools_that_the_root_does_not_have() {
        let nested: &[(&str, &[&str])] = &[
            ("api", &["uv.lock"]),
            ("web", &["package-lock.json", "Cargo.lock"]),
            ("docs", &["requirements.txt"]),
            (".cache", &["go.sum"]),
            ("my app", &["go.sum"]),
            ("-x", &["go.sum"]),
        ];
        let expected = ["(cd web && npm ci)", "(cd api && uv sync --frozen)", "cargo fetch --locked"];
        assert_eq!(commands_for(&["Cargo.lock"], nested), expected);
    }

    #[test]
    fn files_with_secrets_are_named_but_not_suggested() {
        let root_names =
            list_names(&[".env", ".env.local", ".env.example", ".envrc", ".nvmrc", ".npmrc", "a", "node_modules"]);
        let candidates = find_seed_candidates(&root_names);
        assert_eq!(candidates, [".env", ".env.local", ".npmrc", ".nvmrc"]);
        let seeds = suggest_seeds(&candidates, &list_names(&[".env", ".nvmrc", "node_modules"]));
        let rendered: Vec<(&str, bool)> = seeds.iter().map(|seed| (seed.path.as_str(), seed.is_secret)).collect();
        assert_eq!(rendered, [(".env", true), (".nvmrc", false)]);
        assert_eq!(render_settings_lines(&[], &seeds), ["workspace:", "  seed:", "    - .nvmrc"]);
        assert_eq!(render_settings_lines(&[], &seeds[..1]), [""; 0]);
    }

    #[test]
    fn the_lines_are_valid_yaml_that_gives_the_commands_back() {
        let all_locks: Vec<&str> = ECOSYSTEMS.iter().flat_map(|row| row.lock_files).map(|(name, _)| *name).collect();
        for lock_file in all_locks {
            let nested = ("web".to_string(), list_names(&[lock_file]));
            let steps = [
                suggest_setup(&ProjectListing { root_names: list_names(&[lock_file]), ..ProjectListing::default() }),
                suggest_setup(&ProjectListing { names_by_directory: [nested].into(), ..ProjectListing::default() }),
            ]
            .concat();
            let root = yaml::parse_yaml(&render_settings_lines(&steps, &[]).join("\n")).unwrap();
            let items = root.get("workspace").unwrap().get("setup").unwrap().items();
            let commands: Vec<&str> = items.iter().map(|item| item.scalar_text().unwrap()).collect();
            assert_eq!(commands, steps.iter().map(|step| step.command.as_str()).collect::<Vec<_>>());
        }
    }
}
