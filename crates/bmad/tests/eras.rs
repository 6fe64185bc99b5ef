//! Trees of every era, as BMAD's own installer lays them: read without a surprise. `cargo xtask bmad` installs and runs it.

mod trees;

use tribunal_bmad::{
    commands::{self, Command, Step},
    config::{self, Folders},
    layout::{self, Era},
    shelf::Shelf,
};

/// The version a tree was installed from; one for other clients has a word behind it: `6.12.0+others`.
fn version(tree: &trees::Tree) -> &str {
    tree.name.split('+').next().unwrap_or(&tree.name)
}

#[test]
#[ignore = "needs real trees: cargo xtask bmad"]
fn every_tree_is_of_one_era_by_its_version_and_by_its_files() {
    let mut drawn = Vec::new();
    for tree in trees::all() {
        let layout = layout::read(&tree);
        assert_eq!(layout.version.as_deref(), Some(version(&tree)));
        assert_eq!(layout.by_version, layout.by_files, "{}", tree.name);
        assert_eq!(layout.problems, [], "{}", tree.name);
        drawn.push(format!("{}: {}", tree.name, layout.era.map_or("-".into(), |era| era.to_string())));
        drawn.extend(layout.reasons.iter().map(|reason| format!("  {reason}")));
        drawn.extend(layout.clients.iter().map(|client| {
            format!("  {} {:?} in {}: {}", client.name, client.entries, client.folder, client.count)
        }));
        let modules = layout.modules.iter().map(|module| module.name.clone()).collect::<Vec<_>>();
        drawn.push(format!("  modules {}", modules.join(", ")));
    }
    insta::assert_snapshot!(drawn.join("\n"));
}

#[test]
#[ignore = "needs real trees: cargo xtask bmad"]
fn every_tree_says_where_its_documents_stand() {
    for tree in trees::all() {
        let config = config::read(&tree);
        assert_eq!(config.problems, [], "{}", tree.name);
        assert_eq!(config.folders, Folders::default(), "{}", tree.name);
        assert_eq!(config.document_language.as_deref(), Some("English"), "{}", tree.name);
        assert_eq!(config.skill_level.as_deref(), Some("intermediate"), "{}", tree.name);
        assert!(config.project_name.is_some() && config.user_name.is_some(), "{}", tree.name);
        assert!(config.origin("planning_artifacts").is_some(), "{}", tree.name);
    }
}

#[test]
#[ignore = "needs real trees: cargo xtask bmad"]
fn every_step_is_run_by_a_file_that_is_there() {
    let mut drawn = Vec::new();
    for tree in trees::all() {
        let layout = layout::read(&tree);
        drawn.push(tree.name.clone());
        for step in Step::ALL {
            for client in ["claude-code", "codex"] {
                let command = commands::of(&layout, step, client, &tree);
                if let Some(file) = command.file() {
                    assert!(tree.read(file).unwrap().is_some(), "{} {step}: {file}", tree.name);
                }
                drawn.push(match command {
                    Command::Slash { text, .. } => format!("  {step} {text}"),
                    Command::Text { file, .. } => format!("  {step} reads {file}"),
                    Command::Missing { why, .. } => format!("  {step} none: {why}"),
                });
            }
        }
    }
    insta::assert_snapshot!(drawn.join("\n"));
}

/// What the story run needs, in every era.
#[test]
#[ignore = "needs real trees: cargo xtask bmad"]
fn no_tree_lacks_a_step_of_the_story_run() {
    let steps =
        [Step::SprintPlanning, Step::DevStory, Step::CodeReview, Step::Retrospective, Step::SprintStatus];
    let others = [
        Step::Readiness,
        Step::Party,
        Step::Prd,
        Step::Architecture,
        Step::Epics,
        Step::ProductBrief,
        Step::Ux,
    ];
    for tree in trees::all() {
        let layout = layout::read(&tree);
        let story = (layout.era != Some(Era::D)).then_some(Step::CreateStory);
        for step in steps.into_iter().chain(others).chain(story) {
            for client in ["claude-code", "codex", "opencode", "gemini"] {
                let command = commands::of(&layout, step, client, &tree);
                assert!(command.prompt("").is_some(), "{} {client} {step}: {command:?}", tree.name);
            }
        }
    }
}
