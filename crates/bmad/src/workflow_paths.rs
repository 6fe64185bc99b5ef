//! The path files of early alphas and `bmm-workflow-status.yaml`: which workflows a project was to go through, and how far it
//! has come. Later eras have `help` instead.
//!
//! A workflow is identified by its file: the commands that these files name need not exist.

use tribunal_json::Serialize;

use crate::{
    problem::FileProblem,
    yaml::{self, YamlNode},
};

/// The directory of the path files, below BMAD's own directory.
pub const PATHS_DIR: &str = "bmm/workflows/workflow-status/paths";
/// The name of the status file, in the directory for plans or for all output.
pub const STATUS_FILE: &str = "bmm-workflow-status.yaml";

/// How much a workflow is needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkflowNeed {
    Required,
    Recommended,
    Optional,
    /// Needed on this condition: `if_has_ui`.
    Conditional(String),
}

/// One workflow of a track.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrackWorkflow {
    pub id: String,
    /// The phase, from 0; phase 0 documents an existing project.
    pub phase: u32,
    pub need: WorkflowNeed,
    /// The workflow's file, relative to the project's root; empty if none is named.
    pub file: String,
    pub agent: String,
    pub line: usize,
}

/// The content of a path file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkflowTrack {
    /// `bmad-method`, `enterprise-bmad-method`.
    pub track_name: String,
    /// `greenfield`, `brownfield`.
    pub field_type: String,
    pub workflows: Vec<TrackWorkflow>,
    pub problems: Vec<FileProblem>,
}

/// How far one workflow has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkflowProgress {
    Ahead(WorkflowNeed),
    Skipped,
    /// Done, with the file that the workflow wrote.
    Done(String),
}

/// The content of the status file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkflowStatusFile {
    pub project: String,
    pub track: String,
    pub field_type: String,
    /// The path file that the project follows.
    pub path_file: String,
    /// The progress of each workflow by its id, in the order of the file.
    pub progress_items: Vec<(String, WorkflowProgress)>,
    pub problems: Vec<FileProblem>,
}

/// Reads a path file. A workflow without an id is left out with a problem, since nothing could refer to it.
pub fn read_track(file_path: &str, yaml_text: &str) -> WorkflowTrack {
    let mut track = WorkflowTrack::default();
    let Some(root_node) = parse_or_report(file_path, yaml_text, &mut track.problems) else { return track };
    track.track_name = text_at(&root_node, "track");
    track.field_type = text_at(&root_node, "field_type");
    for (index, phase) in items_at(&root_node, "phases").iter().enumerate() {
        // Some phases have no number; their position stands for it.
        let phase_number = text_at(phase, "phase").parse().unwrap_or(u32::try_from(index).unwrap_or(u32::MAX));
        for workflow in items_at(phase, "workflows") {
            let workflow_id = text_at(workflow, "id");
            if workflow_id.is_empty() {
                let message = "workflow without `id`; ignored";
                track.problems.push(FileProblem::warning("path-no-id", file_path, message).at_line(workflow.line));
                continue;
            }
            // Path files name the file in `exec` or in `workflow`; `exec` wins.
            let candidate_files = [text_at(workflow, "exec"), text_at(workflow, "workflow")];
            let workflow_file =
                candidate_files.into_iter().find(|workflow_file| !workflow_file.is_empty()).unwrap_or_default();
            track.workflows.push(TrackWorkflow {
                id: workflow_id,
                phase: phase_number,
                need: parse_need(workflow),
                // All paths of this crate are relative to the root.
                file: workflow_file.trim_start_matches("{project-root}/").to_string(),
                agent: text_at(workflow, "agent"),
                line: workflow.line,
            });
        }
    }
    track
}

/// Reads the status file in each of the forms that agents write.
pub fn read_workflow_status(file_path: &str, yaml_text: &str) -> WorkflowStatusFile {
    let mut status = WorkflowStatusFile::default();
    let Some(root_node) = parse_or_report(file_path, yaml_text, &mut status.problems) else { return status };
    status.project = text_at(&root_node, "project");
    status.track = text_at(&root_node, "selected_track");
    status.field_type = text_at(&root_node, "field_type");
    status.path_file = text_at(&root_node, "workflow_path");
    let Some(status_items) = root_node.get("workflow_status") else {
        let message = "missing key `workflow_status`";
        status.problems.push(
            FileProblem::warning("workflow-status-empty", file_path, message)
                .with_reason("Planning progress is taken from the documents alone."),
        );
        return status;
    };
    for status_entry in status_items.entries() {
        if let Some(value) = status_entry.value.scalar_text() {
            status.progress_items.push((status_entry.key.clone(), parse_progress(value)));
        }
    }
    // The value may also be a list of mappings with one key each, or with `id` and `status`.
    for status_item in status_items.items() {
        let workflow_id = text_at(status_item, "id");
        if workflow_id.is_empty() {
            let pairs = status_item
                .entries()
                .iter()
                .filter_map(|status_entry| Some((status_entry.key.clone(), status_entry.value.scalar_text()?)));
            status.progress_items.extend(pairs.map(|(workflow_id, value)| (workflow_id, parse_progress(value))));
        } else {
            status.progress_items.push((workflow_id, parse_progress(&text_at(status_item, "status"))));
        }
    }
    status
}

/// Parses the value of a workflow in the status file.
fn parse_progress(status_text: &str) -> WorkflowProgress {
    match status_text.trim() {
        "skipped" => WorkflowProgress::Skipped,
        "required" => WorkflowProgress::Ahead(WorkflowNeed::Required),
        "recommended" => WorkflowProgress::Ahead(WorkflowNeed::Recommended),
        "" | "optional" => WorkflowProgress::Ahead(WorkflowNeed::Optional),
        status_text if status_text.starts_with("conditional") || status_text.starts_with("if_") => {
            WorkflowProgress::Ahead(WorkflowNeed::Conditional(status_text.to_string()))
        }
        // Any other value is the file that the workflow wrote.
        written_file => WorkflowProgress::Done(written_file.trim_start_matches("{project-root}/").to_string()),
    }
}

fn parse_need(workflow: &YamlNode) -> WorkflowNeed {
    let is_true = |key: &str| text_at(workflow, key) == "true";
    let condition = text_at(workflow, "conditional");
    if !condition.is_empty() {
        WorkflowNeed::Conditional(condition)
    } else if is_true("required") {
        WorkflowNeed::Required
    } else if is_true("recommended") {
        WorkflowNeed::Recommended
    } else {
        WorkflowNeed::Optional
    }
}

impl WorkflowTrack {
    /// The workflows that can run now: those that are neither done nor skipped, up to and including the first required one.
    pub fn next_workflows(&self, status: &WorkflowStatusFile) -> Vec<&TrackWorkflow> {
        let mut runnable = Vec::new();
        for workflow in &self.workflows {
            let progress = status
                .progress_items
                .iter()
                .find(|(workflow_id, _)| *workflow_id == workflow.id)
                .map(|(_, progress)| progress);
            // The status file knows the project better than the path file does, so its need wins.
            let need = match progress {
                Some(WorkflowProgress::Done(_) | WorkflowProgress::Skipped) => continue,
                Some(WorkflowProgress::Ahead(need)) => need,
                None => &workflow.need,
            };
            runnable.push(workflow);
            // Nothing behind a required workflow can start before it is done.
            if *need == WorkflowNeed::Required {
                break;
            }
        }
        runnable
    }
}

fn parse_or_report(file_path: &str, yaml_text: &str, problems: &mut Vec<FileProblem>) -> Option<YamlNode> {
    match yaml::parse_yaml(yaml_text) {
        Ok(root_node) => Some(root_node),
        Err(parse_error) => {
            let mut problem = FileProblem::error("workflow-status-broken", file_path, parse_error.message);
            problem.line = parse_error.line;
            problem.column = parse_error.column;
            problems.push(problem.with_advice("fix the line, or delete the file and start over with workflow-init"));
            None
        }
    }
}

fn text_at(node: &YamlNode, key: &str) -> String {
    node.get(key).and_then(YamlNode::scalar_text).map(|yaml_text| yaml_text.trim().to_string()).unwrap_or_default()
}

fn items_at<'n>(node: &'n YamlNode, key: &str) -> &'n [YamlNode] {
    node.get(key).map(YamlNode::items).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PATH: &str = "track: bmad-method\nfield_type: greenfield\nphases:\n  - phase: 1\n    workflows:\n      - id: storm\n\
        \x20       exec: \"{project-root}/_bmad/s.md\"\n        optional: true\n\
        \x20 - phase: 2\n    workflows:\n      - id: prd\n        workflow: \"{project-root}/_bmad/p.yaml\"\n\
            \x20       required: true\n        agent: pm\n        command: /not/there\n      - id: ux\n\
            \x20       conditional: if_has_ui\n      - note: no id\n      - id: last\n        recommended: true\n";

    #[test]
    fn a_path_is_read_by_its_files() {
        let track = read_track("p.yaml", PATH);
        let rendered: Vec<String> = track
            .workflows
            .iter()
            .map(|workflow| {
                format!("{} {} {:?} {} {}", workflow.phase, workflow.id, workflow.need, workflow.file, workflow.line)
            })
            .collect();
        insta::assert_snapshot!(rendered.join("\n"), @r#"
        1 storm Optional _bmad/s.md 6
        2 prd Required _bmad/p.yaml 11
        2 ux Conditional("if_has_ui")  16
        2 last Recommended  19
        "#);
        assert_eq!(track.problems.len(), 1);
    }

    #[test]
    fn the_progress_of_a_project_decides_what_is_next() {
        let track = read_track("p.yaml", PATH);
        for (yaml_text, expected) in [
            ("", "storm prd"),
            ("workflow_status:\n  storm: skipped\n  prd: required\n", "prd"),
            ("workflow_status:\n  storm: skipped\n  prd: \"{project-root}/docs/prd.md\"\n  ux: optional\n", "ux last"),
            ("workflow_status:\n  - storm: required\n", "storm"),
            (
                "workflow_status:\n  - id: storm\n    status: docs/storm.md\n  - id: prd\n    status: docs/prd.md\n",
                "ux last",
            ),
        ] {
            let status = read_workflow_status("s.yaml", yaml_text);
            let ids: Vec<String> = track.next_workflows(&status).iter().map(|workflow| workflow.id.clone()).collect();
            assert_eq!(ids.join(" "), expected, "{yaml_text}");
        }
        let broken_status = read_workflow_status("s.yaml", "a: [\n");
        assert_eq!(broken_status.problems[0].rule, "workflow-status-broken");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(phases:|workflows:|workflow_status:|  - |id: x|\n|  | ){0,40}") {
            read_track("p.yaml", &text).next_workflows(&read_workflow_status("s.yaml", &text));
        }
    }
}
