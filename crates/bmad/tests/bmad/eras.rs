//! Trees of every era, as BMAD's own installer creates them, are read without problems. `cargo xtask bmad` installs and runs
//! it.

use tribunal_bmad::{
    commands::{self, Command, Step},
    config::{self, Folders},
    field::{self, Ground},
    help,
    layout::{self, Era},
    page::{Page, spliced},
    paths,
    roster::{self, roster},
    shelf::{self, Shelf},
    specs,
    state::{self, State},
    story, tier, toml_tree, yaml,
};

use crate::trees;

/// The version of a tree; a tree for other clients has a suffix: `6.12.0+others`.
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
                if let Command::Slash { file, .. } | Command::Text { file, .. } = &command {
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

/// The steps that a story run needs exist in every era.
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

#[test]
#[ignore = "needs real trees: cargo xtask bmad"]
fn every_tree_has_a_roster_whose_agents_can_be_called() {
    let mut drawn = Vec::new();
    for tree in trees::all() {
        let mut problems = Vec::new();
        let (roster, path) = roster::of(&tree, &mut problems).expect("a roster");
        assert_eq!(problems, [], "{}", tree.name);
        assert_eq!(roster.remarks, [""; 0], "{}", tree.name);
        for member in &roster.members {
            assert_eq!(roster.named(&member.qualified()), Ok(member), "{}", tree.name);
            assert_eq!(roster.named(&member.name), Ok(member), "{}", tree.name);
        }
        let names: Vec<String> = roster.members.iter().map(roster::Member::qualified).collect();
        let line =
            format!("{} from {path}: {} personas, {}", tree.name, roster.personas.len(), names.join(" "));
        drawn.push(line);
    }
    insta::assert_snapshot!(drawn.join("\n"));
}

#[test]
#[ignore = "needs real trees: cargo xtask bmad"]
fn a_fresh_tree_is_clean_and_its_method_is_known() {
    let mut drawn = Vec::new();
    for tree in trees::all() {
        let (layout, config) = (layout::read(&tree), config::read(&tree));
        let found = state::read(&tree, &layout, &config);
        assert_eq!(found.state, State::Clean, "{}: {:?}", tree.name, found.reasons);
        assert_eq!(found.problems, [], "{}", tree.name);
        assert_eq!(field::read(&tree, &config).ground, Ground::Greenfield, "{}", tree.name);
        let next = found
            .next
            .iter()
            .map(|next| format!("{}{}", next.workflow, if next.required { "!" } else { "" }));
        drawn.push(format!("{}: {}", tree.name, next.collect::<Vec<_>>().join(" ")));
        let path = format!("_bmad/{}", help::HELP_PATH);
        if let Some(text) = tree.read(&path).unwrap() {
            let help = help::read(&path, &text);
            let order = help.order();
            let order = order.iter().filter(|workflow| workflow.required).map(|workflow| workflow.id.clone());
            drawn.push(format!("  {:?}: {}", help.schema, order.collect::<Vec<_>>().join(" ")));
        }
    }
    insta::assert_snapshot!(drawn.join("\n"));
}

#[test]
#[ignore = "needs real trees: cargo xtask bmad"]
fn the_paths_of_the_alpha_lead_to_files_that_are_there() {
    let trees = trees::all();
    let alpha = trees.iter().find(|tree| tree.name.contains("alpha")).expect("an alpha");
    let folder = format!("_bmad/{}", paths::PATHS);
    let names = alpha.names(&folder);
    assert_eq!(names.len(), 4);
    for name in names {
        let path = format!("{folder}/{name}");
        let track = paths::read(&path, &alpha.read(&path).unwrap().unwrap());
        assert_eq!(track.problems, [], "{name}");
        assert!(track.stops.len() >= 8, "{name}");
        for stop in track.stops.iter().filter(|stop| !stop.file.is_empty()) {
            assert!(shelf::has(alpha, &stop.file), "{name}: {}", stop.file);
        }
    }
    let levels = format!("_bmad/{}", tier::LEVELS);
    let (_, problems) = tier::Levels::read(&levels, &alpha.read(&levels).unwrap().unwrap());
    assert_eq!(problems, []);
}

/// Every reader accepts every file, and an edit changes its value and nothing else.
#[test]
#[ignore = "needs real trees: cargo xtask bmad"]
fn every_file_is_read_and_can_be_edited_in_one_place() {
    let mut broken = Vec::new();
    let mut counts = std::collections::BTreeMap::new();
    for tree in trees::all() {
        for path in tree.files() {
            let Ok(Some(text)) = tree.read(&path) else { continue };
            let ending = path.rsplit('.').next().unwrap_or_default().to_string();
            match ending.as_str() {
                "yaml" | "yml" => match yaml::parse(&text) {
                    Ok(node) => each_value_alone(&text, &node, &format!("{} {path}", tree.name)),
                    Err(why) => {
                        broken.push(format!("{} {path}:{} {}", tree.name, why.line.unwrap_or(0), why.what))
                    }
                },
                "toml" => {
                    let (_, wrong) = toml_tree::parse(&text);
                    let wrong = wrong.iter().map(|why| format!("{} {path} {}", tree.name, why.what));
                    broken.extend(wrong);
                }
                "csv" => {
                    help::read(&path, &text);
                    roster(&text);
                }
                "md" => {
                    each_line_alone(&text, &format!("{} {path}", tree.name));
                    story::read(&path, &text);
                    specs::spec(&path, &text);
                    tribunal_bmad::epics::read(&[(&path, &text)]);
                }
                _ => continue,
            }
            *counts.entry(ending).or_insert(0) += 1;
        }
    }
    assert!(counts.values().sum::<usize>() > 1500, "{counts:?}");
    assert_eq!(broken, Vec::<String>::new());
}

/// Replaces one value after the other: that leaf has the new text, and every other leaf is unchanged.
fn each_value_alone(text: &str, node: &yaml::Node, name: &str) {
    fn leaves(node: &yaml::Node, out: &mut Vec<(Option<std::ops::Range<usize>>, String)>) {
        out.extend(node.text().map(|text| (node.span.clone(), text.to_string())));
        node.items().iter().for_each(|item| leaves(item, out));
        node.entries().iter().for_each(|entry| leaves(&entry.value, out));
    }
    let mut before = Vec::new();
    leaves(node, &mut before);
    // A value that came through an alias follows its anchor.
    if before.iter().any(|(span, _)| span.is_none()) {
        return;
    }
    for (index, (span, _)) in before.iter().enumerate().take(20) {
        let Some(span) = span.clone().filter(|span| !text[span.clone()].contains('\n')) else { continue };
        let edited = spliced(text, &[(span, "exchanged".to_string())]);
        let mut after = Vec::new();
        leaves(&yaml::parse(&edited).unwrap_or_else(|why| panic!("{name}: {why:?}")), &mut after);
        let told = |leaves: &[(Option<std::ops::Range<usize>>, String)]| {
            leaves.iter().map(|(_, text)| text.clone()).collect::<Vec<_>>()
        };
        let mut expected = told(&before);
        expected[index] = "exchanged".to_string();
        assert_eq!(told(&after), expected, "{name}");
    }
}

/// Replaces every seventh line: all others stay the same.
fn each_line_alone(text: &str, name: &str) {
    let page = Page::of(text);
    for index in (0..page.lines.len()).step_by(7) {
        let line = &page.lines[index];
        let span = line.start..line.start + line.text.len();
        let edited = spliced(text, &[(span, "exchanged".to_string())]);
        let after = Page::of(&edited);
        assert_eq!(after.lines.len(), page.lines.len(), "{name}");
        for (line, (old, new)) in page.lines.iter().zip(&after.lines).enumerate() {
            let expected = if line == index { "exchanged" } else { old.text };
            assert_eq!(new.text, expected, "{name}:{}", line + 1);
        }
    }
}
