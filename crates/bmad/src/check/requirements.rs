//! The functional requirements of the PRD compared with the epics: those that no epic covers, and those that the PRD does not
//! have.
//!
//! Other kinds are left alone: epics number those themselves where the PRD does not.

use std::collections::{BTreeMap, BTreeSet};

use super::material::CheckMaterial;
use crate::{
    commands::BmadStep,
    documents::DocumentKind,
    epic_id::EpicId,
    epics::{Requirement, find_requirement_ids, read_inventory},
    problem::FileProblem,
};

pub(super) fn check_requirements(check_material: &CheckMaterial<'_>, problems: &mut Vec<FileProblem>) {
    report_unknown_epics_in_coverage(check_material, problems);
    let mut seen_ids = BTreeSet::new();
    let prd_requirements: Vec<Requirement> = check_material
        // A requirement may be defined again in a later part of the PRD; the first place counts.
        .texts_of_kind(DocumentKind::Prd)
        .flat_map(|document| read_inventory(&document.path, &document.text))
        .filter(|requirement| is_functional(&requirement.id) && seen_ids.insert(requirement.id.clone()))
        .collect();
    let named_in_epics = locate_requirements_in_epics(check_material);
    // If one of the two does not number its requirements, nothing can be compared.
    if prd_requirements.is_empty()
        || named_in_epics.is_empty()
        || check_material.texts_of_kind(DocumentKind::Epics).next().is_none()
    {
        return;
    }
    report_uncovered(check_material, &prd_requirements, problems);
    // A requirement that is not recognized as a definition still belongs to the PRD if it is mentioned there.
    let mentioned_ids: BTreeSet<String> = check_material
        .texts_of_kind(DocumentKind::Prd)
        .flat_map(|document| find_requirement_ids(&document.text))
        .collect();
    let unknown_ids =
        named_in_epics.into_iter().filter(|(requirement_id, _)| !mentioned_ids.contains(requirement_id)).collect();
    report_unknown(&prd_requirements, unknown_ids, problems);
}

fn is_functional(requirement_id: &str) -> bool {
    requirement_id.starts_with("FR")
}

/// Where a requirement is named.
struct RequirementPlace {
    path: String,
    line: usize,
}

/// Every functional requirement that the epics name, with its first place.
fn locate_requirements_in_epics(check_material: &CheckMaterial<'_>) -> BTreeMap<String, RequirementPlace> {
    let epics = &check_material.epics;
    let in_inventory =
        epics.requirements.iter().map(|requirement| (&requirement.id, &requirement.path, requirement.line));
    let in_coverage = epics
        .coverage
        .iter()
        .map(|coverage_entry| (&coverage_entry.requirement, &coverage_entry.path, coverage_entry.line));
    let in_epics = epics
        .epics
        .iter()
        .flat_map(|epic| epic.requirements.iter().map(move |requirement_id| (requirement_id, &epic.path, epic.line)));
    let in_stories = epics.stories().flat_map(|story| {
        story.requirements.iter().map(move |requirement_id| (requirement_id, &story.path, story.line))
    });
    let mut places_by_id = BTreeMap::new();
    for (requirement_id, epics_path, line_number) in in_inventory.chain(in_coverage).chain(in_epics).chain(in_stories) {
        if is_functional(requirement_id) {
            places_by_id
                .entry(requirement_id.clone())
                .or_insert_with(|| RequirementPlace { path: epics_path.clone(), line: line_number });
        }
    }
    places_by_id
}

/// Reports requirements that no epic covers. The inventory of the epics only repeats the PRD and covers nothing.
fn report_uncovered(
    check_material: &CheckMaterial<'_>,
    prd_requirements: &[Requirement],
    problems: &mut Vec<FileProblem>,
) {
    let epics = &check_material.epics;
    let by_map =
        epics.coverage.iter().filter(|map_entry| !map_entry.epics.is_empty()).map(|map_entry| &map_entry.requirement);
    let by_epics = epics.epics.iter().flat_map(|epic| &epic.requirements);
    let by_stories = epics.stories().flat_map(|story| &story.requirements);
    let covered_ids: BTreeSet<&String> = by_map.chain(by_epics).chain(by_stories).collect();
    // Epics that name no requirement at all cover them in other words.
    if !covered_ids.iter().any(|requirement_id| is_functional(requirement_id)) {
        return;
    }
    let epics_path = check_material.documents.epics().map_or("the epics", |epics| epics.path.as_str());
    for requirement in prd_requirements.iter().filter(|requirement| !covered_ids.contains(&requirement.id)) {
        let message = format!("{} is not covered by any epic ({epics_path})", requirement.id);
        problems.push(
            FileProblem::warning("requirement-uncovered", &requirement.path, message)
                .at_line(requirement.line)
                .with_reason("Requirements without a story do not get built.")
                .with_advice(format!("add it to an epic: {}", check_material.command_for_step(BmadStep::Epics))),
        );
    }
}

/// Reports requirements that the epics name and the PRD does not have.
fn report_unknown(
    prd_requirements: &[Requirement],
    unknown_ids: BTreeMap<String, RequirementPlace>,
    problems: &mut Vec<FileProblem>,
) {
    let prd_path = prd_requirements.first().map_or("the PRD", |requirement| requirement.path.as_str());
    for (requirement_id, first_place) in unknown_ids {
        let message = format!("unknown requirement {requirement_id} (not in {prd_path})");
        problems.push(
            FileProblem::warning("requirement-unknown", &first_place.path, message)
                .at_line(first_place.line)
                .with_reason("The PRD or the epics changed without the other.")
                .with_advice("add it to the PRD or remove it here"),
        );
    }
}

/// Reports epics that the coverage map names and that do not exist.
fn report_unknown_epics_in_coverage(check_material: &CheckMaterial<'_>, problems: &mut Vec<FileProblem>) {
    // Without any epic the map is only ahead of the plan.
    let known_epics: BTreeSet<&EpicId> = check_material.epics.epics.iter().map(|epic| &epic.number).collect();
    if known_epics.is_empty() {
        return;
    }
    for coverage in &check_material.epics.coverage {
        for epic in coverage.epics.iter().filter(|epic| !known_epics.contains(epic)) {
            let message = format!("{} is mapped to epic {epic}, which does not exist", coverage.requirement);
            let problem = FileProblem::warning("coverage-unknown-epic", &coverage.path, message).at_line(coverage.line);
            problems.push(problem.with_advice("correct the map or add the epic"));
        }
    }
}
