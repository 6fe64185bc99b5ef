//! Files that test runners and build tools read by themselves: what they say decides whether a check passes.

use alloc::{string::ToString, vec::Vec};

use super::check_scripts::{CheckScript, PathForm, ScriptPart};

/// A family of tools, with the names or patterns of the files that they read by themselves, in any directory.
const RUNNER_FILES: [(&[&str], &[&str]); 6] = [
    (&PYTHON_TOOLS, &["conftest.py", "pytest.ini", ".pytest.ini", "sitecustomize.py", "usercustomize.py"]),
    (
        &JAVASCRIPT_TOOLS,
        &[
            "jest.config.*",
            "jest.setup.*",
            "vitest.config.*",
            "vitest.workspace.*",
            "vitest.setup.*",
            ".mocharc.*",
            "karma.conf.*",
            "playwright.config.*",
            "cypress.config.*",
        ],
    ),
    (&["cargo"], &["build.rs", ".cargo/config.toml", ".cargo/config", ".config/nextest.toml"]),
    (&["rspec", "bundle", "rake", "rails", "ruby"], &[".rspec", "spec_helper.rb", "rails_helper.rb", "test_helper.rb"]),
    (&["phpunit", "composer", "php"], &["phpunit.xml", "phpunit.xml.dist"]),
    (&["mix"], &["test_helper.exs"]),
];
const PYTHON_TOOLS: [&str; 12] =
    ["python", "python3", "pytest", "py.test", "tox", "nox", "hatch", "pdm", "poetry", "uv", "coverage", "pipenv"];
const JAVASCRIPT_TOOLS: [&str; 12] =
    ["npm", "pnpm", "yarn", "bun", "node", "jest", "vitest", "mocha", "karma", "playwright", "cypress", "deno"];
/// Modules of Python that test runners import. A new file or package of that name beside the tests is taken in their place.
const PYTHON_MODULES: [&str; 48] = [
    "abc",
    "argparse",
    "ast",
    "asyncio",
    "builtins",
    "collections",
    "contextlib",
    "copy",
    "dataclasses",
    "datetime",
    "decimal",
    "difflib",
    "doctest",
    "enum",
    "fnmatch",
    "functools",
    "glob",
    "importlib",
    "inspect",
    "io",
    "itertools",
    "json",
    "logging",
    "math",
    "operator",
    "os",
    "pathlib",
    "pdb",
    "pluggy",
    "pprint",
    "pytest",
    "random",
    "re",
    "shutil",
    "signal",
    "socket",
    "string",
    "struct",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
    "traceback",
    "types",
    "typing",
    "unittest",
    "warnings",
];

/// Lists what the tools read by themselves that a program is or may start. `None` stands for a program of which only its own files can
/// tell what it starts.
pub(super) fn list_runner_files(program: Option<&str>) -> Vec<CheckScript> {
    let is_started = |tools: &&[&str]| program.is_none_or(|program| tools.contains(&program));
    let mut files: Vec<CheckScript> = RUNNER_FILES
        .iter()
        .filter(|(tools, _)| is_started(tools))
        .flat_map(|(_, names)| names.iter())
        .map(|name| {
            let form = if *name == "build.rs" { PathForm::Configuration } else { PathForm::Named };
            CheckScript::new(form, name, ScriptPart::WholeFile)
        })
        .collect();
    if is_started(&&PYTHON_TOOLS[..]) {
        let paths =
            PYTHON_MODULES.iter().flat_map(|module| [module.to_string() + ".py", module.to_string() + "/__init__.py"]);
        files.extend(paths.map(|path| CheckScript::new(PathForm::Root, &path, ScriptPart::NewFile)));
    }
    files
}
