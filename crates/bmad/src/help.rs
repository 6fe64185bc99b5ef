//! `bmad-help.csv`: which workflows there are, in which phase, which of them are required, and their order.
//!
//! There are two headers, and one version (6.3.0) that has the rows of the later header under the earlier one, with a column
//! too few in most rows: those are read by what their fields look like. Early alphas have path files instead:
//! `workflow_paths`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{commands::Step, csv, problem::Problem};

/// The file's path, below BMAD's directory.
pub const HELP_PATH: &str = "_config/bmad-help.csv";

/// No project has more workflows; a longer file is garbage.
const MOST: usize = 2000;

/// How the rows have to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Schema {
    /// `phase,name,code,sequence,workflow-file,command,…`
    Early,
    /// `skill,display-name,menu-code,…,preceded-by,followed-by,required,…`
    Late,
    /// Late rows under the early header.
    Shifted,
}

/// One workflow, or one action of a workflow that has several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Workflow {
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

impl Workflow {
    /// Whether it may run at any time instead of at a certain point.
    pub fn anytime(&self) -> bool {
        rank(&self.phase).is_none()
    }

    /// The step of the method that the workflow is, if it is one.
    pub fn step(&self) -> Option<Step> {
        Step::named(&self.id)
    }

    /// Whether a reference such as `bmad-create-story:create` means this workflow.
    fn is(&self, named: &str) -> bool {
        let (id, action) = named.split_once(':').unwrap_or((named, ""));
        self.id == id && (action.is_empty() || self.action == action)
    }
}

/// The graph of a project's workflows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Help {
    pub schema: Schema,
    pub workflows: Vec<Workflow>,
    pub problems: Vec<Problem>,
}

/// The position of a phase; `None` if it can run at any time. Version 6.12 has both old names and new ones.
fn rank(phase: &str) -> Option<u32> {
    // Three digits are enough for any phase, and the product cannot overflow.
    let digits: String = phase.trim().chars().take_while(char::is_ascii_digit).take(3).collect();
    match (digits.parse::<u32>(), phase.trim()) {
        (Ok(number), _) => Some(number * 10),
        (_, "plan") => Some(25),
        (_, "ship") => Some(40),
        _ => None,
    }
}

/// Reads the list of workflows. The schema is detected by the header and, for 6.3.0, by the rows.
pub fn read(path: &str, text: &str) -> Help {
    let table = csv::parse(text);
    let mut help = Help { schema: Schema::Late, workflows: Vec::new(), problems: Vec::new() };
    if let Some(line) = table.unclosed {
        let what = "a quote that opens here is never closed, and its row was left out";
        help.problems.push(Problem::warning("help-quote", path, what).at(line));
    }
    let Some((head, rows)) = table.rows.split_first() else {
        help.problems.push(Problem::warning("help-empty", path, "the list of workflows is empty"));
        return help;
    };
    let head: Vec<&str> = head.iter().map(|name| name.trim()).collect();
    let has = |name: &str| head.contains(&name);
    help.schema = match (has("skill"), has("workflow-file")) {
        (true, _) => Schema::Late,
        // A skill's name in the second column gives the shifted rows of 6.3.0 away.
        (false, true) if rows.iter().any(|row| is_skill(row.get(1))) => Schema::Shifted,
        (false, true) => Schema::Early,
        (false, false) => {
            let what = "it has neither a column `skill` nor `workflow-file`";
            let problem = Problem::warning("help-columns", path, what);
            help.problems.push(problem.todo("run BMAD's installer again"));
            return help;
        }
    };
    let rows = rows.iter().filter_map(|fields| match help.schema {
        Schema::Early => early(&Row { head: &head, fields }),
        Schema::Late => late(&Row { head: &head, fields }),
        Schema::Shifted => shifted(fields),
    });
    // One more than the limit is read, so that a longer list is noticed.
    help.workflows = rows.take(MOST + 1).collect();
    if help.workflows.len() > MOST {
        help.workflows.truncate(MOST);
        let what = format!("it names more than {MOST} workflows; the rest was left out");
        help.problems.push(Problem::warning("help-long", path, what));
    }
    help
}

fn is_skill(field: Option<&String>) -> bool {
    field.is_some_and(|field| field.starts_with("bmad-") || field == "_meta")
}

/// A row with the header that names its columns.
struct Row<'a> {
    head: &'a [&'a str],
    fields: &'a [String],
}

impl Row<'_> {
    fn get(&self, column: &str) -> String {
        let index = self.head.iter().position(|name| *name == column);
        index
            .and_then(|index| self.fields.get(index))
            .map(|field| field.trim().to_string())
            .unwrap_or_default()
    }
}

/// Reads a row of the early schema.
fn early(row: &Row<'_>) -> Option<Workflow> {
    let file = row.get("workflow-file");
    // Version 6.1 names skills in the column for files.
    let (file, skill) = match file.strip_prefix("skill:") {
        Some(skill) => (String::new(), skill.to_string()),
        None => (file, String::new()),
    };
    let command = row.get("command");
    let id = if command.is_empty() { skill } else { command };
    let options = row.get("options");
    let action = options.strip_suffix(" Mode").filter(|mode| *mode != "Create").unwrap_or_default();
    // Rows without a command belong to an agent and are no workflow.
    (!id.is_empty()).then(|| Workflow {
        module: row.get("module"),
        id,
        action: action.to_lowercase(),
        name: row.get("name"),
        phase: row.get("phase"),
        required: row.get("required") == "true",
        sequence: row.get("sequence").parse().ok(),
        file,
        output: row.get("output-location"),
        ..Workflow::default()
    })
}

/// Reads a row of the late schema. The row `_meta` describes the module and is no workflow.
fn late(row: &Row<'_>) -> Option<Workflow> {
    let id = row.get("skill");
    (!id.is_empty() && id != "_meta").then(|| Workflow {
        module: row.get("module"),
        id,
        action: row.get("action"),
        name: row.get("display-name"),
        phase: row.get("phase"),
        required: row.get("required") == "true",
        after: several(&row.get("preceded-by")),
        before: several(&row.get("followed-by")),
        output: row.get("output-location"),
        ..Workflow::default()
    })
}

/// Reads a row of 6.3.0 by what its fields look like: a phase, behind it the predecessors; the last truth value is
/// `required`.
fn shifted(fields: &[String]) -> Option<Workflow> {
    let field = |index: usize| fields.get(index).map(|field| field.trim().to_string()).unwrap_or_default();
    let id = field(1);
    if id.is_empty() || id == "_meta" {
        return None;
    }
    let is_phase = |field: &String| rank(field).is_some() || field.trim() == "anytime";
    // The first five fields are fixed, and a description among them may look like a phase.
    let phase = fields.iter().skip(5).position(is_phase).map(|at| at + 5)?;
    let truth = |field: &String| matches!(field.trim(), "true" | "false");
    let required = fields.iter().rposition(truth).filter(|at| *at > phase);
    let between = fields.get(phase + 1..required.unwrap_or(phase + 1)).unwrap_or_default();
    let named: Vec<&String> = between.iter().filter(|field| field.starts_with("bmad-")).collect();
    // Predecessors stand right behind the phase, successors further on.
    let first = fields.get(phase + 1).is_some_and(|field| field.starts_with("bmad-"));
    let split = usize::from(first).min(named.len());
    let action = field(5);
    Some(Workflow {
        module: field(0),
        id,
        // Without an action its column is missing, so the field there is the phase or an argument in brackets.
        action: if phase > 5 && !action.starts_with('[') { action } else { String::new() },
        name: field(2),
        phase: field(phase),
        required: required.is_some_and(|at| field(at) == "true"),
        after: named[..split].iter().map(|field| field.trim().to_string()).collect(),
        before: named[split..].iter().map(|field| field.trim().to_string()).collect(),
        output: required.map(|at| field(at + 1)).unwrap_or_default(),
        ..Workflow::default()
    })
}

/// Splits a list of names; versions use different separators.
fn several(field: &str) -> Vec<String> {
    let names = field.split([',', ';', '|']).map(str::trim).filter(|name| !name.is_empty());
    names.map(str::to_string).collect()
}

impl Help {
    /// The workflows of the method in the order in which they are meant to run: predecessors first, then by phase, number and
    /// row. Workflows that can run at any time are left out.
    pub fn order(&self) -> Vec<&Workflow> {
        let mut by_id: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let nodes: Vec<&Workflow> = self.workflows.iter().filter(|workflow| !workflow.anytime()).collect();
        for (index, node) in nodes.iter().enumerate() {
            by_id.entry(node.id.as_str()).or_default().push(index);
        }
        // A reference may mean several actions of one workflow.
        let named = |name: &str| -> Vec<usize> {
            let id = name.split(':').next().unwrap_or(name);
            let same = by_id.get(id).map(Vec::as_slice).unwrap_or_default();
            same.iter().copied().filter(|index| nodes[*index].is(name)).collect()
        };
        // A topological sort: how many predecessors each node still waits for, and which nodes wait for it.
        let mut waits = vec![0_usize; nodes.len()];
        let mut then: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
        for (index, node) in nodes.iter().enumerate() {
            let before = node.after.iter().flat_map(|name| named(name)).map(|first| (first, index));
            let after = node.before.iter().flat_map(|name| named(name)).map(|last| (index, last));
            // A workflow that names itself would never be ready.
            for (first, last) in before.chain(after).filter(|(first, last)| first != last) {
                then[first].push(last);
                waits[last] += 1;
            }
        }
        // Among the nodes that are ready, phase, number and row decide, so that the order never depends on chance.
        let key = |index: usize| {
            let node = nodes[index];
            (rank(&node.phase).unwrap_or(u32::MAX), node.sequence.unwrap_or(0), index)
        };
        let mut ready: std::collections::BTreeSet<_> =
            (0..nodes.len()).filter(|index| waits[*index] == 0).map(key).collect();
        let mut order = Vec::new();
        while let Some((.., index)) = ready.pop_first() {
            order.push(index);
            for next in std::mem::take(&mut then[index]) {
                waits[next] -= 1;
                if waits[next] == 0 {
                    ready.insert(key(next));
                }
            }
        }
        // Nodes in a cycle wait for each other; they come last, sorted by their phase, so that no workflow is lost.
        let mut rest: Vec<usize> = (0..nodes.len()).filter(|index| waits[*index] > 0).collect();
        rest.sort_by_key(|index| key(*index));
        order.into_iter().chain(rest).map(|index| nodes[index]).collect()
    }

    /// The workflows that can run now: optional ones that are not done, up to and including the first required one.
    pub fn next(&self, is_done: impl Fn(&Workflow) -> bool) -> Vec<&Workflow> {
        let mut next = Vec::new();
        for workflow in self.order() {
            if is_done(workflow) {
                continue;
            }
            next.push(workflow);
            if workflow.required {
                break;
            }
        }
        next
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

    fn drawn(text: &str) -> String {
        let help = read("h.csv", text);
        let line = |workflow: &&Workflow| {
            let need = if workflow.required { "required" } else { "optional" };
            format!("{} {} {need} [{}] {:?}", workflow.id, workflow.action, workflow.phase, workflow.step())
        };
        let order: Vec<String> = help.order().iter().map(line).collect();
        let problems: String = help.problems.iter().map(|problem| format!("\n{problem}")).collect();
        format!("{:?} of {}\n{}{problems}", help.schema, help.workflows.len(), order.join("\n"))
    }

    #[test]
    fn each_schema_is_read_in_the_order_of_the_method() {
        insta::assert_snapshot!([drawn(EARLY), drawn(LATE), drawn(SHIFTED)].join("\n\n"));
    }

    #[test]
    fn what_comes_next_ends_with_what_is_required() {
        let help = read("h.csv", LATE);
        let next = |done: &[&str]| {
            let next = help.next(|workflow| done.contains(&workflow.id.as_str()));
            next.iter().map(|workflow| workflow.id.clone()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(next(&[]), "bmad-product-brief bmad-prd");
        assert_eq!(next(&["bmad-prd"]), "bmad-product-brief bmad-ux bmad-architecture");
        assert_eq!(
            next(&["bmad-product-brief", "bmad-ux", "bmad-prd", "bmad-architecture"]),
            "bmad-sprint-planning"
        );
    }

    #[test]
    fn a_ring_is_walked_through_and_what_is_no_list_is_said() {
        let ring = "module,skill,display-name,phase,preceded-by,followed-by,required\nM,b,,1-a,a,,true\nM,a,,1-a,b,,true\n\
            M,c,,9-z,c,,true\n";
        assert!(
            drawn(ring).contains("c  required [9-z] None\nb  required [1-a] None\na  required"),
            "{}",
            drawn(ring)
        );
        assert_eq!(drawn(""), "Late of 0\n\nh.csv: the list of workflows is empty");
        assert_eq!(
            drawn("a,b\n1,2\n"),
            "Late of 0\n\nh.csv: it has neither a column `skill` nor `workflow-file`"
        );
        assert!(drawn("skill,phase\nx,\"y\n").contains("h.csv:2: a quote that opens here is never closed"));
    }

    proptest! {
        #[test]
        fn any_rows_are_read_without_a_panic(rows in "(M|bmad-a|bmad-b:c|,|,|,|true|false|1-x|anytime|\"|\n){0,60}") {
            for head in [EARLY, LATE] {
                let head = head.lines().next().unwrap_or_default();
                let help = read("h.csv", &format!("{head}\n{rows}"));
                prop_assert!(help.order().len() <= help.workflows.len());
            }
        }
    }
}
