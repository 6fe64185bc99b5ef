//! Which part of a makefile a target runs.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::{String, ToString},
    vec::Vec,
};

/// Whether a file is a makefile by its name.
pub fn is_makefile(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(name, "Makefile" | "makefile" | "GNUmakefile")
}

/// Returns the recipes of targets and of what they depend on, and all lines that include another makefile. Without a target `make` takes
/// the first one. What is written with patterns, functions or conditions is taken as it stands.
pub fn select_recipes(makefile_text: &str, targets: &[String]) -> String {
    let joined = makefile_text.replace("\\\n", " ");
    let (mut rules, mut selected) = (BTreeMap::<&str, Rule<'_>>::new(), Vec::new());
    let (mut first_target, mut current): (Option<&str>, Vec<&str>) = (None, Vec::new());
    for line in joined.lines() {
        if let Some(recipe_line) = line.strip_prefix('\t') {
            for target in &current {
                rules.entry(*target).or_default().recipe.push(recipe_line);
            }
        } else if is_include(line) {
            selected.push(line);
        } else if let Some((names, prerequisites)) = split_rule(line) {
            current = names.split_whitespace().collect();
            first_target = first_target.or_else(|| current.iter().find(|name| !name.starts_with('.')).copied());
            let (prerequisites, inline_recipe) = prerequisites.split_once(';').unwrap_or((prerequisites, ""));
            for target in &current {
                let rule = rules.entry(*target).or_default();
                rule.prerequisites.extend(prerequisites.split_whitespace());
                rule.recipe.push(inline_recipe);
            }
        }
    }
    let is_known = |target: &&str| rules.contains_key(target);
    let mut pending: Vec<&str> = targets.iter().map(String::as_str).filter(is_known).collect();
    if pending.is_empty() {
        pending.extend(first_target);
    }
    let mut seen = BTreeSet::new();
    while let Some(target) = pending.pop() {
        if let Some(rule) = rules.get(target).filter(|_| seen.insert(target)) {
            selected.extend(&rule.recipe);
            pending.extend(&rule.prerequisites);
        }
    }
    selected.join("\n").to_string()
}

#[derive(Default)]
struct Rule<'a> {
    prerequisites: Vec<&'a str>,
    recipe: Vec<&'a str>,
}

fn is_include(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or_default();
    matches!(word.trim_start_matches('-'), "include" | "sinclude")
}

/// Splits `targets: prerequisites`; `None` for assignments, comments and other lines.
fn split_rule(line: &str) -> Option<(&str, &str)> {
    let line = line.split('#').next().unwrap_or(line);
    let (names, rest) = line.split_once(':')?;
    let is_assignment = names.contains('=') || rest.starts_with('=') || rest.starts_with(":=");
    (!is_assignment && !names.trim().is_empty()).then(|| (names, rest.trim_start_matches(':')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_target_runs_is_selected() {
        let makefile = "include common.mk\nS := a.sh\n.PHONY: check deploy\ncheck: lint $(S)\n\tsh ci/check.sh\nlint: ; sh ci/lint.sh\n\
                        deploy:\n\tsh ci/deploy.sh\n";
        let select = |target: &str| select_recipes(makefile, &[target.to_string()]);
        assert_eq!(select("check"), "include common.mk\n\nsh ci/check.sh\n sh ci/lint.sh");
        assert_eq!(select("deploy"), "include common.mk\n\nsh ci/deploy.sh");
        assert_eq!(select_recipes(makefile, &[]), select("check"), "the first target");
        assert_eq!(select_recipes("a: b\nb: a\n\ttrue\n", &["a".to_string()]), "\n\ntrue");
    }
}
