//! The path files of early alphas and `bmm-workflow-status.yaml`: which workflows a project was to go through, and how far it
//! has come. Later eras have `help` instead.
//!
//! A workflow is identified by its file: a quarter of the commands that these files name do not exist.

use serde::Serialize;

use crate::{
    problem::Problem,
    yaml::{self, Node},
};

/// The directory of the path files, below BMAD's own directory.
pub const PATHS: &str = "bmm/workflows/workflow-status/paths";
/// The name of the status file, in the directory for plans or for all output.
pub const STATUS: &str = "bmm-workflow-status.yaml";

/// How much a workflow is needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    Required,
    Recommended,
    Optional,
    /// Needed on this condition: `if_has_ui`.
    Conditional(String),
}

/// One workflow of a track.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stop {
    pub id: String,
    /// The phase, from 0; phase 0 documents an existing project.
    pub phase: u32,
    pub need: Need,
    /// The workflow's file, relative to the project's root; empty if none is named.
    pub file: String,
    pub agent: String,
    pub line: usize,
}

/// The content of a path file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Track {
    /// `bmad-method`, `enterprise-bmad-method`.
    pub track: String,
    /// `greenfield`, `brownfield`.
    pub field: String,
    pub stops: Vec<Stop>,
    pub problems: Vec<Problem>,
}

/// How far one workflow has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Progress {
    Ahead(Need),
    Skipped,
    /// Done, with the file that the workflow wrote.
    Done(String),
}

/// The content of the status file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    pub project: String,
    pub track: String,
    pub field: String,
    /// The path file that the project follows.
    pub path: String,
    /// The progress of each workflow by its id, in the order of the file.
    pub items: Vec<(String, Progress)>,
    pub problems: Vec<Problem>,
}

/// Reads a path file. A workflow without an id is left out with a problem, since nothing could refer to it.
pub fn read(path: &str, text: &str) -> Track {
    let mut track = Track::default();
    let Some(tree) = parsed(path, text, &mut track.problems) else { return track };
    track.track = said(&tree, "track");
    track.field = said(&tree, "field_type");
    for (index, phase) in list(&tree, "phases").iter().enumerate() {
        // Some phases have no number; their position stands for it.
        let number = said(phase, "phase").parse().unwrap_or(u32::try_from(index).unwrap_or(u32::MAX));
        for workflow in list(phase, "workflows") {
            let id = said(workflow, "id");
            if id.is_empty() {
                let what = "a workflow without `id` was passed over";
                track.problems.push(Problem::warning("path-no-id", path, what).at(workflow.line));
                continue;
            }
            // Newer path files name a step file in `exec`, older ones a workflow in `workflow`.
            let file = [said(workflow, "exec"), said(workflow, "workflow")];
            let file = file.into_iter().find(|file| !file.is_empty()).unwrap_or_default();
            track.stops.push(Stop {
                id,
                phase: number,
                need: need_of(workflow),
                // All paths of this crate are relative to the root.
                file: file.trim_start_matches("{project-root}/").to_string(),
                agent: said(workflow, "agent"),
                line: workflow.line,
            });
        }
    }
    track
}

/// Reads the status file in each of the forms that agents write.
pub fn status(path: &str, text: &str) -> Status {
    let mut status = Status::default();
    let Some(tree) = parsed(path, text, &mut status.problems) else { return status };
    status.project = said(&tree, "project");
    status.track = said(&tree, "selected_track");
    status.field = said(&tree, "field_type");
    status.path = said(&tree, "workflow_path");
    let Some(items) = tree.get("workflow_status") else {
        let what = "it has no `workflow_status`";
        status.problems.push(
            Problem::warning("workflow-status-empty", path, what)
                .why("how far planning has come is told by the documents alone"),
        );
        return status;
    };
    for entry in items.entries() {
        if let Some(value) = entry.value.text() {
            status.items.push((entry.key.clone(), progress(value)));
        }
    }
    // Some agents write a list of mappings with one key each, or with `id` and `status`.
    for item in items.items() {
        let id = said(item, "id");
        if id.is_empty() {
            let pairs =
                item.entries().iter().filter_map(|entry| Some((entry.key.clone(), entry.value.text()?)));
            status.items.extend(pairs.map(|(id, value)| (id, progress(value))));
        } else {
            status.items.push((id, progress(&said(item, "status"))));
        }
    }
    status
}

/// Parses the value of a workflow in the status file.
fn progress(value: &str) -> Progress {
    match value.trim() {
        "skipped" => Progress::Skipped,
        "required" => Progress::Ahead(Need::Required),
        "recommended" => Progress::Ahead(Need::Recommended),
        "" | "optional" => Progress::Ahead(Need::Optional),
        value if value.starts_with("conditional") || value.starts_with("if_") => {
            Progress::Ahead(Need::Conditional(value.to_string()))
        }
        // Any other value is the file that the workflow wrote.
        file => Progress::Done(file.trim_start_matches("{project-root}/").to_string()),
    }
}

fn need_of(workflow: &Node) -> Need {
    let yes = |key: &str| said(workflow, key) == "true";
    let condition = said(workflow, "conditional");
    if !condition.is_empty() {
        Need::Conditional(condition)
    } else if yes("required") {
        Need::Required
    } else if yes("recommended") {
        Need::Recommended
    } else {
        Need::Optional
    }
}

impl Track {
    /// The workflows that can run now: those that are neither done nor skipped, up to and including the first required one.
    pub fn next(&self, status: &Status) -> Vec<&Stop> {
        let mut next = Vec::new();
        for stop in &self.stops {
            let progress = status.items.iter().find(|(id, _)| *id == stop.id).map(|(_, progress)| progress);
            // The status file knows the project better than the path file does, so its need wins.
            let need = match progress {
                Some(Progress::Done(_) | Progress::Skipped) => continue,
                Some(Progress::Ahead(need)) => need,
                None => &stop.need,
            };
            next.push(stop);
            // Nothing behind a required workflow can start before it is done.
            if *need == Need::Required {
                break;
            }
        }
        next
    }
}

fn parsed(path: &str, text: &str, problems: &mut Vec<Problem>) -> Option<Node> {
    match yaml::parse(text) {
        Ok(tree) => Some(tree),
        Err(broken) => {
            let mut problem = Problem::error("workflow-status-broken", path, broken.what);
            problem.line = broken.line;
            problem.column = broken.column;
            problems.push(problem.todo("repair the line, or remove the file and begin with workflow-init"));
            None
        }
    }
}

fn said(node: &Node, key: &str) -> String {
    node.get(key).and_then(Node::text).map(|text| text.trim().to_string()).unwrap_or_default()
}

fn list<'n>(node: &'n Node, key: &str) -> &'n [Node] {
    node.get(key).map(Node::items).unwrap_or_default()
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
        let track = read("p.yaml", PATH);
        let drawn: Vec<String> = track
            .stops
            .iter()
            .map(|stop| format!("{} {} {:?} {} {}", stop.phase, stop.id, stop.need, stop.file, stop.line))
            .collect();
        insta::assert_snapshot!(drawn.join("\n"), @r#"
        1 storm Optional _bmad/s.md 6
        2 prd Required _bmad/p.yaml 11
        2 ux Conditional("if_has_ui")  16
        2 last Recommended  19
        "#);
        assert_eq!(track.problems.len(), 1);
    }

    #[test]
    fn how_far_a_project_has_come_says_what_is_next() {
        let track = read("p.yaml", PATH);
        for (text, next) in [
            ("", "storm prd"),
            ("workflow_status:\n  storm: skipped\n  prd: required\n", "prd"),
            (
                "workflow_status:\n  storm: skipped\n  prd: \"{project-root}/docs/prd.md\"\n  ux: optional\n",
                "ux last",
            ),
            ("workflow_status:\n  - storm: required\n", "storm"),
            (
                "workflow_status:\n  - id: storm\n    status: docs/storm.md\n  - id: prd\n    status: docs/prd.md\n",
                "ux last",
            ),
        ] {
            let status = status("s.yaml", text);
            let ids: Vec<String> = track.next(&status).iter().map(|stop| stop.id.clone()).collect();
            assert_eq!(ids.join(" "), next, "{text}");
        }
        let broken = status("s.yaml", "a: [\n");
        assert_eq!(broken.problems[0].rule, "workflow-status-broken");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(phases:|workflows:|workflow_status:|  - |id: x|\n|  | ){0,40}") {
            read("p.yaml", &text).next(&status("s.yaml", &text));
        }
    }
}
