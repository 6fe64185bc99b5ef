//! Trees of every era, as BMAD's own installer creates them, are read without problems. `cargo xtask bmad` installs and runs
//! it.

use tribunal_bmad::{
    commands::{self, BmadStep, StepCommand},
    config::{self, ProjectFolders},
    field_type::{self, FieldType},
    help,
    layout::{self, Era},
    markdown::{MarkdownPage, apply_edits},
    project_files::{self, ProjectFiles},
    project_state::{self, ProjectState},
    roster::{self, parse_roster},
    specs, story, tier, toml_tree, workflow_paths, yaml,
};

use crate::trees;

/// The version of a tree; a tree for other clients has a suffix: `6.12.0+others`.
fn tree_version(installed_tree: &trees::InstalledTree) -> &str {
    installed_tree.name.split('+').next().unwrap_or(&installed_tree.name)
}

#[test]
#[ignore = "needs real trees: cargo xtask bmad"]
fn every_tree_is_of_one_era_by_its_version_and_by_its_files() {
    let mut rendered = Vec::new();
    for installed_tree in trees::all_trees() {
        let layout = layout::read_layout(&installed_tree);
        assert_eq!(layout.version.as_deref(), Some(tree_version(&installed_tree)));
        assert_eq!(layout.by_version, layout.by_files, "{}", installed_tree.name);
        assert_eq!(layout.problems, [], "{}", installed_tree.name);
        rendered.push(format!("{}: {}", installed_tree.name, layout.era.map_or("-".into(), |era| era.to_string())));
        rendered.extend(layout.reasons.iter().map(|reason| format!("  {reason}")));
        rendered.extend(
            layout
                .clients
                .iter()
                .map(|client| format!("  {} {:?} in {}: {}", client.name, client.entries, client.folder, client.count)),
        );
        let modules = layout.modules.iter().map(|module| module.name.clone()).collect::<Vec<_>>();
        rendered.push(format!("  modules {}", modules.join(", ")));
    }
    insta::assert_snapshot!(rendered.join("\n"));
}

#[test]
#[ignore = "needs real trees: cargo xtask bmad"]
fn every_tree_says_where_its_documents_stand() {
    for installed_tree in trees::all_trees() {
        let config = config::read_config(&installed_tree);
        assert_eq!(config.problems, [], "{}", installed_tree.name);
        assert_eq!(config.folders, ProjectFolders::default(), "{}", installed_tree.name);
        assert_eq!(config.document_language.as_deref(), Some("English"), "{}", installed_tree.name);
        assert_eq!(config.skill_level.as_deref(), Some("intermediate"), "{}", installed_tree.name);
        assert!(config.project_name.is_some() && config.user_name.is_some(), "{}", installed_tree.name);
        assert!(config.origin("planning_artifacts").is_some(), "{}", installed_tree.name);
    }
}

#[test]
#[ignore = "needs real trees: cargo xtask bmad"]
fn every_step_is_run_by_an_existing_file() {
    let mut rendered = Vec::new();
    for installed_tree in trees::all_trees() {
        let layout = layout::read_layout(&installed_tree);
        rendered.push(installed_tree.name.clone());
        for step in BmadStep::ALL {
            for client in ["claude-code", "codex"] {
                let command = commands::find_command(&layout, step, client, &installed_tree);
                if let StepCommand::Slash { file, .. } | StepCommand::Text { file, .. } = &command {
                    assert!(
                        installed_tree.read_file(file).unwrap().is_some(),
                        "{} {step}: {file}",
                        installed_tree.name
                    );
                }
                rendered.push(match command {
                    StepCommand::Slash { text, .. } => format!("  {step} {text}"),
                    StepCommand::Text { file, .. } => format!("  {step} reads {file}"),
                    StepCommand::Missing { why: reason, .. } => format!("  {step} none: {reason}"),
                });
            }
        }
    }
    insta::assert_snapshot!(rendered.join("\n"));
}

/// The steps that a story run needs exist in every era.
#[test]
#[ignore = "needs real trees: cargo xtask bmad"]
fn no_tree_lacks_a_step_of_the_story_run() {
    let required_steps = [
        BmadStep::SprintPlanning,
        BmadStep::DevStory,
        BmadStep::CodeReview,
        BmadStep::Retrospective,
        BmadStep::SprintStatus,
    ];
    let planning_steps = [
        BmadStep::Readiness,
        BmadStep::Party,
        BmadStep::Prd,
        BmadStep::Architecture,
        BmadStep::Epics,
        BmadStep::ProductBrief,
        BmadStep::Ux,
    ];
    for installed_tree in trees::all_trees() {
        let layout = layout::read_layout(&installed_tree);
        let create_story = (layout.era != Some(Era::D)).then_some(BmadStep::CreateStory);
        for step in required_steps.into_iter().chain(planning_steps).chain(create_story) {
            for client in ["claude-code", "codex", "opencode", "gemini"] {
                let command = commands::find_command(&layout, step, client, &installed_tree);
                assert!(command.to_prompt("").is_some(), "{} {client} {step}: {command:?}", installed_tree.name);
            }
        }
    }
}

#[test]
#[ignore = "needs real trees: cargo xtask bmad"]
fn every_tree_has_a_roster_whose_agents_can_be_called() {
    let mut rendered = Vec::new();
    for installed_tree in trees::all_trees() {
        let mut problems = Vec::new();
        let (roster, roster_path) = roster::find_roster(&installed_tree, &mut problems).expect("a roster");
        assert_eq!(problems, [], "{}", installed_tree.name);
        assert_eq!(roster.remarks, [""; 0], "{}", installed_tree.name);
        for member in &roster.members {
            assert_eq!(roster.find_member(&member.qualified_name()), Ok(member), "{}", installed_tree.name);
            assert_eq!(roster.find_member(&member.name), Ok(member), "{}", installed_tree.name);
        }
        let member_names: Vec<String> = roster.members.iter().map(roster::RosterMember::qualified_name).collect();
        let roster_line = format!(
            "{} from {roster_path}: {} personas, {}",
            installed_tree.name,
            roster.personas.len(),
            member_names.join(" ")
        );
        rendered.push(roster_line);
    }
    insta::assert_snapshot!(rendered.join("\n"));
}

#[test]
#[ignore = "needs real trees: cargo xtask bmad"]
fn a_fresh_tree_is_clean_and_its_method_is_known() {
    let mut rendered = Vec::new();
    for installed_tree in trees::all_trees() {
        let (layout, config) = (layout::read_layout(&installed_tree), config::read_config(&installed_tree));
        let survey = project_state::survey_project(&installed_tree, &layout, &config);
        assert_eq!(survey.state, ProjectState::Clean, "{}: {:?}", installed_tree.name, survey.reasons);
        assert_eq!(survey.problems, [], "{}", installed_tree.name);
        assert_eq!(
            field_type::read_field(&installed_tree, &config).ground,
            FieldType::Greenfield,
            "{}",
            installed_tree.name
        );
        let next_names = survey.next_workflows.iter().map(|next_workflow| {
            format!("{}{}", next_workflow.workflow, if next_workflow.required { "!" } else { "" })
        });
        rendered.push(format!("{}: {}", installed_tree.name, next_names.collect::<Vec<_>>().join(" ")));
        let help_path = format!("_bmad/{}", help::HELP_PATH);
        if let Some(csv_text) = installed_tree.read_file(&help_path).unwrap() {
            let graph = help::read_help(&help_path, &csv_text);
            let ordered_workflows = graph.ordered_workflows();
            let required_ids =
                ordered_workflows.iter().filter(|workflow| workflow.required).map(|workflow| workflow.id.clone());
            rendered.push(format!("  {:?}: {}", graph.schema, required_ids.collect::<Vec<_>>().join(" ")));
        }
    }
    insta::assert_snapshot!(rendered.join("\n"));
}

#[test]
#[ignore = "needs real trees: cargo xtask bmad"]
fn the_paths_of_the_alpha_lead_to_existing_files() {
    let trees = trees::all_trees();
    let alpha_tree = trees.iter().find(|installed_tree| installed_tree.name.contains("alpha")).expect("an alpha");
    let directory = format!("_bmad/{}", workflow_paths::PATHS_DIR);
    let track_names = alpha_tree.list_names(&directory);
    assert_eq!(track_names.len(), 4);
    for track_name in track_names {
        let track_path = format!("{directory}/{track_name}");
        let track = workflow_paths::read_track(&track_path, &alpha_tree.read_file(&track_path).unwrap().unwrap());
        assert_eq!(track.problems, [], "{track_name}");
        assert!(track.workflows.len() >= 8, "{track_name}");
        for workflow in track.workflows.iter().filter(|workflow| !workflow.file.is_empty()) {
            assert!(project_files::is_readable(alpha_tree, &workflow.file), "{track_name}: {}", workflow.file);
        }
    }
    let levels_path = format!("_bmad/{}", tier::LEVELS_FILE);
    let (_, problems) =
        tier::TierLevels::from_yaml(&levels_path, &alpha_tree.read_file(&levels_path).unwrap().unwrap());
    assert_eq!(problems, []);
}

/// Every reader accepts every file, and an edit changes its value and nothing else.
#[test]
#[ignore = "needs real trees: cargo xtask bmad"]
fn every_file_is_read_and_can_be_edited_in_one_place() {
    let mut parse_failures = Vec::new();
    let mut counts_by_extension = std::collections::BTreeMap::new();
    for installed_tree in trees::all_trees() {
        for file_path in installed_tree.list_files() {
            let Ok(Some(file_text)) = installed_tree.read_file(&file_path) else { continue };
            let extension = file_path.rsplit('.').next().unwrap_or_default().to_string();
            match extension.as_str() {
                "yaml" | "yml" => match yaml::parse_yaml(&file_text) {
                    Ok(node) => check_each_value(&file_text, &node, &format!("{} {file_path}", installed_tree.name)),
                    Err(error) => parse_failures.push(format!(
                        "{} {file_path}:{} {}",
                        installed_tree.name,
                        error.line.unwrap_or(0),
                        error.message
                    )),
                },
                "toml" => {
                    let (_, toml_errors) = toml_tree::parse_toml(&file_text);
                    let toml_failures = toml_errors
                        .iter()
                        .map(|error| format!("{} {file_path} {}", installed_tree.name, error.message));
                    parse_failures.extend(toml_failures);
                }
                "csv" => {
                    help::read_help(&file_path, &file_text);
                    parse_roster(&file_text);
                }
                "md" => {
                    check_each_line(&file_text, &format!("{} {file_path}", installed_tree.name));
                    story::read_story(&file_path, &file_text);
                    specs::read_spec(&file_path, &file_text);
                    tribunal_bmad::epics::read_epics(&[(&file_path, &file_text)]);
                }
                _ => continue,
            }
            *counts_by_extension.entry(extension).or_insert(0) += 1;
        }
    }
    assert!(counts_by_extension.values().sum::<usize>() > 1500, "{counts_by_extension:?}");
    assert_eq!(parse_failures, Vec::<String>::new());
}

/// Replaces one value after the other: that leaf has the new text, and every other leaf is unchanged.
fn check_each_value(yaml_text: &str, node: &yaml::YamlNode, file_name: &str) {
    fn collect_leaves(node: &yaml::YamlNode, leaf_values: &mut Vec<(Option<std::ops::Range<usize>>, String)>) {
        leaf_values.extend(node.scalar_text().map(|scalar| (node.span.clone(), scalar.to_string())));
        node.items().iter().for_each(|item| collect_leaves(item, leaf_values));
        node.entries().iter().for_each(|entry| collect_leaves(&entry.value, leaf_values));
    }
    let mut old_leaves = Vec::new();
    collect_leaves(node, &mut old_leaves);
    // A value that came through an alias follows its anchor.
    if old_leaves.iter().any(|(span, _)| span.is_none()) {
        return;
    }
    for (index, (span, _)) in old_leaves.iter().enumerate().take(20) {
        let Some(span) = span.clone().filter(|span| !yaml_text[span.clone()].contains('\n')) else {
            continue;
        };
        let edited = apply_edits(yaml_text, &[(span, "exchanged".to_string())]);
        let mut edited_leaves = Vec::new();
        collect_leaves(
            &yaml::parse_yaml(&edited).unwrap_or_else(|error| panic!("{file_name}: {error:?}")),
            &mut edited_leaves,
        );
        let leaf_texts = |leaves: &[(Option<std::ops::Range<usize>>, String)]| {
            leaves.iter().map(|(_, leaf_text)| leaf_text.clone()).collect::<Vec<_>>()
        };
        let mut expected = leaf_texts(&old_leaves);
        expected[index] = "exchanged".to_string();
        assert_eq!(leaf_texts(&edited_leaves), expected, "{file_name}");
    }
}

/// Replaces every seventh line: all others stay the same.
fn check_each_line(page_text: &str, file_name: &str) {
    let markdown = MarkdownPage::parse(page_text);
    for index in (0..markdown.lines.len()).step_by(7) {
        let line = &markdown.lines[index];
        let span = line.start_offset..line.start_offset + line.text.len();
        let edited = apply_edits(page_text, &[(span, "exchanged".to_string())]);
        let edited_page = MarkdownPage::parse(&edited);
        assert_eq!(edited_page.lines.len(), markdown.lines.len(), "{file_name}");
        for (line, (old_line, new_line)) in markdown.lines.iter().zip(&edited_page.lines).enumerate() {
            let expected = if line == index { "exchanged" } else { old_line.text };
            assert_eq!(new_line.text, expected, "{file_name}:{}", line + 1);
        }
    }
}
