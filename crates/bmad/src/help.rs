//! `bmad-help.csv`: which workflows there are, in which phase, which of them are required, and their order.
//!
//! There are two headers, and one version (6.3.0) that has the rows of the later header under the earlier one, with a column
//! too few in most rows: those are read by what their fields look like. Early alphas have path files instead:
//! `workflow_paths`.

use std::collections::BTreeMap;

use tribunal_json::Serialize;

use crate::{commands::BmadStep, csv, problem::FileProblem};

/// The file's path, below BMAD's directory.
pub const HELP_PATH: &str = "_config/bmad-help.csv";

/// Further workflows of a file are left out, with a problem.
const MAX_WORKFLOWS: usize = 2000;

/// How the rows have to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HelpSchema {
    /// `phase,name,code,sequence,workflow-file,command,…`
    Early,
    /// `skill,display-name,menu-code,…,preceded-by,followed-by,required,…`
    Late,
    /// Late rows under the early header.
    Shifted,
}

/// One workflow, or one action of a workflow that has several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HelpWorkflow {
    pub module: String,
    /// The skill or command that runs it: `bmad-create-prd`.
    pub id: String,
    /// The action, where a workflow can do several things: `validate`.
    pub action: String,
    /// The name for users.
    pub name: String,
    pub phase: String,
    pub required: bool,
    /// The number that the early schema sorts by.
    pub sequence: Option<u32>,
    /// The workflow's file, where the early schema names one.
    pub file: String,
    /// The workflows that come before it and after it: `bmad-prd`, `bmad-create-story:create`.
    pub after: Vec<String>,
    pub before: Vec<String>,
    /// A key of the settings or a folder, and what is written there.
    pub output: String,
}

impl HelpWorkflow {
    /// Whether it may run at any time instead of at a certain point.
    pub fn is_anytime(&self) -> bool {
        phase_rank(&self.phase).is_none()
    }

    /// The step of the method that the workflow is, if it is one.
    pub fn step(&self) -> Option<BmadStep> {
        BmadStep::from_name(&self.id)
    }

    /// Whether a reference such as `bmad-create-story:create` means this workflow.
    fn matches_name(&self, reference: &str) -> bool {
        let (workflow_id, wanted_action) = reference.split_once(':').unwrap_or((reference, ""));
        self.id == workflow_id && (wanted_action.is_empty() || self.action == wanted_action)
    }
}

/// The graph of a project's workflows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowGraph {
    pub schema: HelpSchema,
    pub workflows: Vec<HelpWorkflow>,
    pub problems: Vec<FileProblem>,
}

/// The position of a phase; `None` if it can run at any time. Version 6.12 has both old names and new ones.
fn phase_rank(phase: &str) -> Option<u32> {
    // Three digits are enough for any phase, and the product cannot overflow.
    let digits: String = phase.trim().chars().take_while(char::is_ascii_digit).take(3).collect();
    match (digits.parse::<u32>(), phase.trim()) {
        (Ok(phase_number), _) => Some(phase_number * 10),
        (_, "plan") => Some(25),
        (_, "ship") => Some(40),
        _ => None,
    }
}

/// Reads the list of workflows. The schema is detected by the header and, for 6.3.0, by the rows.
pub fn read_help(help_path: &str, csv_text: &str) -> WorkflowGraph {
    let csv_table = csv::parse_csv(csv_text);
    let mut graph = WorkflowGraph { schema: HelpSchema::Late, workflows: Vec::new(), problems: Vec::new() };
    if let Some(line) = csv_table.unclosed_quote_line {
        let message = "unclosed quote; this row and everything after it is ignored";
        graph.problems.push(FileProblem::warning("help-quote", help_path, message).at_line(line));
    }
    let Some((header_row, data_rows)) = csv_table.rows.split_first() else {
        graph.problems.push(FileProblem::warning("help-empty", help_path, "the list of workflows is empty"));
        return graph;
    };
    let header_row: Vec<&str> = header_row.iter().map(|column_name| column_name.trim()).collect();
    let has_column = |column_name: &str| header_row.contains(&column_name);
    graph.schema = match (has_column("skill"), has_column("workflow-file")) {
        (true, _) => HelpSchema::Late,
        // A skill's name in the second column gives the shifted rows of 6.3.0 away.
        (false, true) if data_rows.iter().any(|row| is_skill_name(row.get(1))) => HelpSchema::Shifted,
        (false, true) => HelpSchema::Early,
        (false, false) => {
            let message = "missing column: neither `skill` nor `workflow-file` found";
            let problem = FileProblem::warning("help-columns", help_path, message);
            graph.problems.push(problem.with_advice("run BMAD's installer again: `npx bmad-method install`"));
            return graph;
        }
    };
    let read_workflows = data_rows.iter().filter_map(|fields| match graph.schema {
        HelpSchema::Early => read_early_row(&HelpRow { head: &header_row, fields }),
        HelpSchema::Late => read_late_row(&HelpRow { head: &header_row, fields }),
        HelpSchema::Shifted => read_shifted_row(fields),
    });
    // One more than the limit is read, so that a longer list is noticed.
    graph.workflows = read_workflows.take(MAX_WORKFLOWS + 1).collect();
    if graph.workflows.len() > MAX_WORKFLOWS {
        graph.workflows.truncate(MAX_WORKFLOWS);
        let message = format!("more than {MAX_WORKFLOWS} workflows; the rest is ignored");
        graph.problems.push(FileProblem::warning("help-long", help_path, message));
    }
    graph
}

fn is_skill_name(field: Option<&String>) -> bool {
    field.is_some_and(|field| field.starts_with("bmad-") || field == "_meta")
}

/// A row with the header that names its columns.
struct HelpRow<'a> {
    head: &'a [&'a str],
    fields: &'a [String],
}

impl HelpRow<'_> {
    fn get(&self, column: &str) -> String {
        let index = self.head.iter().position(|name| *name == column);
        index.and_then(|index| self.fields.get(index)).map(|field| field.trim().to_string()).unwrap_or_default()
    }
}

/// Reads a row of the early schema.
fn read_early_row(row: &HelpRow<'_>) -> Option<HelpWorkflow> {
    let workflow_file = row.get("workflow-file");
    // Version 6.1 names skills in the column for files.
    let (workflow_file, skill_name) = match workflow_file.strip_prefix("skill:") {
        Some(skill_name) => (String::new(), skill_name.to_string()),
        None => (workflow_file, String::new()),
    };
    let command_name = row.get("command");
    let workflow_id = if command_name.is_empty() { skill_name } else { command_name };
    let options = row.get("options");
    let action = options.strip_suffix(" Mode").filter(|mode| *mode != "Create").unwrap_or_default();
    // Rows without a command belong to an agent and are no workflow.
    (!workflow_id.is_empty()).then(|| HelpWorkflow {
        module: row.get("module"),
        id: workflow_id,
        action: action.to_lowercase(),
        name: row.get("name"),
        phase: row.get("phase"),
        required: row.get("required") == "true",
        sequence: row.get("sequence").parse().ok(),
        file: workflow_file,
        output: row.get("output-location"),
        ..HelpWorkflow::default()
    })
}

/// Reads a row of the late schema. The row `_meta` describes the module and is no workflow.
fn read_late_row(row: &HelpRow<'_>) -> Option<HelpWorkflow> {
    let workflow_id = row.get("skill");
    (!workflow_id.is_empty() && workflow_id != "_meta").then(|| HelpWorkflow {
        module: row.get("module"),
        id: workflow_id,
        action: row.get("action"),
        name: row.get("display-name"),
        phase: row.get("phase"),
        required: row.get("required") == "true",
        after: split_names(&row.get("preceded-by")),
        before: split_names(&row.get("followed-by")),
        output: row.get("output-location"),
        ..HelpWorkflow::default()
    })
}

/// Reads a row of 6.3.0 by what its fields look like: a phase, behind it the predecessors; the last truth value is
/// `required`.
fn read_shifted_row(fields: &[String]) -> Option<HelpWorkflow> {
    let field = |index: usize| fields.get(index).map(|field| field.trim().to_string()).unwrap_or_default();
    let workflow_id = field(1);
    if workflow_id.is_empty() || workflow_id == "_meta" {
        return None;
    }
    let is_phase = |field: &String| phase_rank(field).is_some() || field.trim() == "anytime";
    // The first five fields are fixed, and a description among them may look like a phase.
    let phase_index = fields.iter().skip(5).position(is_phase).map(|field_index| field_index + 5)?;
    let is_truth_value = |field: &String| matches!(field.trim(), "true" | "false");
    let required_index = fields.iter().rposition(is_truth_value).filter(|field_index| *field_index > phase_index);
    let middle_fields = fields.get(phase_index + 1..required_index.unwrap_or(phase_index + 1)).unwrap_or_default();
    let workflow_names: Vec<&String> = middle_fields.iter().filter(|field| field.starts_with("bmad-")).collect();
    // Predecessors stand right behind the phase, successors further on.
    let has_predecessor = fields.get(phase_index + 1).is_some_and(|field| field.starts_with("bmad-"));
    let predecessor_count = usize::from(has_predecessor).min(workflow_names.len());
    let action = field(5);
    Some(HelpWorkflow {
        module: field(0),
        id: workflow_id,
        // Without an action its column is missing, so the field there is the phase or an argument in brackets.
        action: if phase_index > 5 && !action.starts_with('[') { action } else { String::new() },
        name: field(2),
        phase: field(phase_index),
        required: required_index.is_some_and(|field_index| field(field_index) == "true"),
        after: workflow_names[..predecessor_count]
            .iter()
            .map(|workflow_name| workflow_name.trim().to_string())
            .collect(),
        before: workflow_names[predecessor_count..]
            .iter()
            .map(|workflow_name| workflow_name.trim().to_string())
            .collect(),
        output: required_index.map(|field_index| field(field_index + 1)).unwrap_or_default(),
        ..HelpWorkflow::default()
    })
}

/// Splits a list of names; versions use different separators.
fn split_names(name_list: &str) -> Vec<String> {
    let names = name_list.split([',', ';', '|']).map(str::trim).filter(|name| !name.is_empty());
    names.map(str::to_string).collect()
}

impl WorkflowGraph {
    /// The workflows of the method in the order in which they are meant to run: predecessors first, then by phase, number and
    /// row. Workflows that can run at any time are left out.
    pub fn ordered_workflows(&self) -> Vec<&HelpWorkflow> {
        let mut indexes_by_id: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let graph_nodes: Vec<&HelpWorkflow> = self.workflows.iter().filter(|workflow| !workflow.is_anytime()).collect();
        for (index, graph_node) in graph_nodes.iter().enumerate() {
            indexes_by_id.entry(graph_node.id.as_str()).or_default().push(index);
        }
        // A reference may mean several actions of one workflow.
        let indexes_of = |name: &str| -> Vec<usize> {
            let workflow_id = name.split(':').next().unwrap_or(name);
            let candidates = indexes_by_id.get(workflow_id).map(Vec::as_slice).unwrap_or_default();
            candidates.iter().copied().filter(|index| graph_nodes[*index].matches_name(name)).collect()
        };
        // A topological sort: how many predecessors each node still waits for, and which nodes wait for it.
        let mut blocker_counts = vec![0_usize; graph_nodes.len()];
        let mut successors: Vec<Vec<usize>> = vec![Vec::new(); graph_nodes.len()];
        for (index, graph_node) in graph_nodes.iter().enumerate() {
            let predecessor_edges =
                graph_node.after.iter().flat_map(|name| indexes_of(name)).map(|earlier| (earlier, index));
            let successor_edges =
                graph_node.before.iter().flat_map(|name| indexes_of(name)).map(|later| (index, later));
            // A workflow that names itself would never be ready.
            for (earlier, later) in predecessor_edges.chain(successor_edges).filter(|(earlier, later)| earlier != later)
            {
                successors[earlier].push(later);
                blocker_counts[later] += 1;
            }
        }
        // Among the nodes that are ready, phase, number and row decide, so that the order never depends on chance.
        let sort_key = |index: usize| {
            let graph_node = graph_nodes[index];
            (phase_rank(&graph_node.phase).unwrap_or(u32::MAX), graph_node.sequence.unwrap_or(0), index)
        };
        let mut ready_nodes: std::collections::BTreeSet<_> =
            (0..graph_nodes.len()).filter(|index| blocker_counts[*index] == 0).map(sort_key).collect();
        let mut sorted_indexes = Vec::new();
        while let Some((.., index)) = ready_nodes.pop_first() {
            sorted_indexes.push(index);
            for successor in std::mem::take(&mut successors[index]) {
                blocker_counts[successor] -= 1;
                if blocker_counts[successor] == 0 {
                    ready_nodes.insert(sort_key(successor));
                }
            }
        }
        // Nodes in a cycle wait for each other; they come last, sorted by their phase, so that no workflow is lost.
        let mut cyclic_nodes: Vec<usize> = (0..graph_nodes.len()).filter(|index| blocker_counts[*index] > 0).collect();
        cyclic_nodes.sort_by_key(|index| sort_key(*index));
        sorted_indexes.into_iter().chain(cyclic_nodes).map(|index| graph_nodes[index]).collect()
    }

    /// The workflows that can run now: optional ones that are not done, up to and including the first required one.
    pub fn next_workflows(&self, is_done: impl Fn(&HelpWorkflow) -> bool) -> Vec<&HelpWorkflow> {
        let mut runnable = Vec::new();
        for workflow in self.ordered_workflows() {
            if is_done(workflow) {
                continue;
            }
            runnable.push(workflow);
            if workflow.required {
                break;
            }
        }
        runnable
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EARLY: &str = "module,phase,name,code,sequence,workflow-file,command,required,agent-name,agent-command,\
        agent-display-name,agent-title,options,description,output-location,outputs\n\
        bmm,4-implementation,Plan,SP,10,_bmad/p/workflow.yaml,bmad-bmm-sprint-planning,true,sm,x,B,S,Create Mode,d,\
            implementation_artifacts,board\n\
        bmm,anytime,Guide,DP,,_bmad/d/workflow.yaml,bmad-bmm-document-project,false,,,,,,d,,\n\
        bmm,2-planning,Check,VP,20,_bmad/v.md,bmad-bmm-create-prd,false,,,,,Validate Mode,d,,\n\
        bmm,2-planning,PRD,CP,10,_bmad/c.md,bmad-bmm-create-prd,true,,,,,Create Mode,\"a, b\",planning_artifacts,prd\n\
        bmm,1-analysis,Storm,BP,10,skill:bmad-brainstorming,bmad-brainstorming,false,,,,,,d,,\n\
        bmm,anytime,Write,WD,,_bmad/a.yaml,,false,,,,,,d,,\n";

    const LATE: &str = "module,skill,display-name,menu-code,description,action,args,phase,preceded-by,followed-by,required,\
        output-location,outputs\n\
        M,_meta,,,,,,,,,false,somewhere,\n\
        M,bmad-prd,PRD,P,d,,,2-planning,bmad-product-brief,,true,planning_artifacts,prd\n\
        M,bmad-ux,UX,U,d,,,2-planning,bmad-prd,,false,,\n\
        M,bmad-sprint-planning,Status,S,d,status,,anytime,,,false,,\n\
        M,bmad-product-brief,Brief,B,d,,,plan,,,false,,\n\
        M,bmad-sprint-planning,Plan,S,d,,,plan,bmad-architecture,,true,,\n\
        M,bmad-architecture,Arch,A,d,,,plan,,,true,,\n\
        M,bmad-build,Build,B,d,,,ship,bmad-sprint-planning,bmad-code-review,true,,\n\
        M,bmad-code-review,Review,R,d,,,ship,,,false,,\n";

    const SHIFTED: &str = "module,phase,name,code,sequence,workflow-file,command,required,agent-name,agent-command,\
        agent-display-name,agent-title,options,description,output-location,outputs\n\
        M,_meta,,,,,,false,,,,,,,somewhere,\n\
        M,bmad-create-prd,PRD,CP,words.,,2-planning,false,,,,,true,planning_artifacts,prd,\n\
        M,bmad-create-ux-design,UX,CU,\"a, b\",,2-planning,bmad-create-prd,,,,,false,planning_artifacts,ux,\n\
        M,bmad-create-story,Make,CS,d,create,,4-implementation,bmad-sprint-planning,,,,bmad-create-story:validate,\
            true,implementation_artifacts,story\n\
        M,bmad-create-story,Look,VS,d,validate,,4-implementation,bmad-create-story:create,,,,bmad-dev-story,false,\
            implementation_artifacts,x\n\
        M,bmad-dev-story,Dev,DS,d,,4-implementation,bmad-create-story:validate,,,,,true,,,\n\
        M,bmad-sprint-planning,Plan,SP,d,,4-implementation,false,,,,,true,implementation_artifacts,board,\n\
        M,bmad-edit-prd,Edit,EP,,,[path],2-planning,bmad-validate-prd,,,,,false,planning_artifacts,prd\n\
        M,bmad-help,Help,BH,,,anytime,false,,,,,false,,,\n";

    fn render_help(text: &str) -> String {
        let graph = read_help("h.csv", text);
        let render_workflow = |workflow: &&HelpWorkflow| {
            let need = if workflow.required { "required" } else { "optional" };
            format!("{} {} {need} [{}] {:?}", workflow.id, workflow.action, workflow.phase, workflow.step())
        };
        let order: Vec<String> = graph.ordered_workflows().iter().map(render_workflow).collect();
        let problems: String = graph.problems.iter().map(|problem| format!("\n{problem}")).collect();
        format!("{:?} of {}\n{}{problems}", graph.schema, graph.workflows.len(), order.join("\n"))
    }

    #[test]
    fn each_schema_is_read_in_the_order_of_the_method() {
        insta::assert_snapshot!([render_help(EARLY), render_help(LATE), render_help(SHIFTED)].join("\n\n"));
    }

    #[test]
    fn the_next_workflows_end_with_the_first_required_one() {
        let graph = read_help("h.csv", LATE);
        let next_ids = |done_ids: &[&str]| {
            let next_ids = graph.next_workflows(|workflow| done_ids.contains(&workflow.id.as_str()));
            next_ids.iter().map(|workflow| workflow.id.clone()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(next_ids(&[]), "bmad-product-brief bmad-prd");
        assert_eq!(next_ids(&["bmad-prd"]), "bmad-product-brief bmad-ux bmad-architecture");
        assert_eq!(
            next_ids(&["bmad-product-brief", "bmad-ux", "bmad-prd", "bmad-architecture"]),
            "bmad-sprint-planning"
        );
    }

    #[test]
    fn a_dependency_cycle_is_ordered_and_an_invalid_list_is_reported() {
        let cycle = "module,skill,display-name,phase,preceded-by,followed-by,required\nM,b,,1-a,a,,true\nM,a,,1-a,b,,true\n\
            M,c,,9-z,c,,true\n";
        assert!(
            render_help(cycle).contains("c  required [9-z] None\nb  required [1-a] None\na  required"),
            "{}",
            render_help(cycle)
        );
        assert_eq!(render_help(""), "Late of 0\n\nh.csv: the list of workflows is empty");
        assert_eq!(
            render_help("a,b\n1,2\n"),
            "Late of 0\n\nh.csv: missing column: neither `skill` nor `workflow-file` found"
        );
        assert!(render_help("skill,phase\nx,\"y\n").contains("h.csv:2: unclosed quote"));
    }

    proptest! {
        #[test]
        fn any_rows_are_read_without_a_panic(rows in "(M|bmad-a|bmad-b:c|,|,|,|true|false|1-x|anytime|\"|\n){0,60}") {
            for head in [EARLY, LATE] {
                let head = head.lines().next().unwrap_or_default();
                let help = read_help("h.csv", &format!("{head}\n{rows}"));
                prop_assert!(help.ordered_workflows().len() <= help.workflows.len());
            }
        }
    }
}
