//! Finds circles among the folders of a crate, and the arrows in them that point back up.
//!
//! A folder is a module below the root of the crate, with everything in it, whether it is a directory or a single file. Files import
//! across folders; these imports are the arrows. Where folders form a circle there is no order in which each needs only those below
//! it. The order with the fewest imports against it shows what would have to change, and those imports are counted.

use std::collections::{BTreeMap, BTreeSet};

use super::import_cycles::{CrateImports, find_components};

/// A file that imports a folder above its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BackArrow {
    pub path: String,
    pub imported_folder: String,
}

/// The folders of one crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderArrows {
    /// The directory of the crate.
    pub crate_dir: String,
    pub folder_count: usize,
    /// The number of folders in each circle, the largest first.
    pub circles: Vec<usize>,
    pub arrows_back: Vec<BackArrow>,
}

/// Measures one crate.
pub fn find_folder_arrows(imports: &CrateImports) -> FolderArrows {
    let folders: Vec<&str> =
        imports.files.iter().filter_map(|file| file.find_folder()).collect::<BTreeSet<_>>().into_iter().collect();
    let find_folder = |file_index: usize| folders.binary_search(&imports.files[file_index].find_folder()?).ok();
    // Which files of a folder import another one.
    let mut importers: BTreeMap<(usize, usize), BTreeSet<usize>> = BTreeMap::new();
    for (file_index, targets) in imports.targets.iter().enumerate() {
        for target_index in targets {
            if let (Some(from), Some(to)) = (find_folder(file_index), find_folder(*target_index))
                && from != to
            {
                importers.entry((from, to)).or_default().insert(file_index);
            }
        }
    }
    let mut neighbours: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); folders.len()];
    for (from, to) in importers.keys() {
        neighbours[*from].insert(*to);
    }
    let mut circles: Vec<Vec<usize>> =
        find_components(&neighbours).into_iter().filter(|circle| circle.len() > 1).collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    let weigh = |from: usize, to: usize| importers.get(&(from, to)).map_or(0, BTreeSet::len);
    let mut arrows_back = Vec::new();
    for circle in &circles {
        let order = find_best_order(circle, &weigh);
        for (position, upper) in order.iter().enumerate() {
            for lower in &order[position + 1..] {
                let files = importers.get(&(*lower, *upper)).into_iter().flatten();
                arrows_back.extend(files.map(|file_index| BackArrow {
                    path: imports.files[*file_index].path.clone(),
                    imported_folder: folders[*upper].to_owned(),
                }));
            }
        }
    }
    arrows_back.sort();
    FolderArrows {
        crate_dir: imports.crate_dir.clone(),
        folder_count: folders.len(),
        circles: circles.iter().map(Vec::len).collect(),
        arrows_back,
    }
}

/// Orders the folders of a circle, the one that needs the others first, so that few imports point back up. Folders are moved one by one
/// while that helps, which finds a good order, not always the best one.
fn find_best_order(circle: &[usize], weigh: &dyn Fn(usize, usize) -> usize) -> Vec<usize> {
    let mut order = circle.to_vec();
    // Folders that import much and are imported little come first.
    let balance = |folder: usize| {
        let (imported, importing): (usize, usize) = circle.iter().fold((0, 0), |(imported, importing), other| {
            (imported + weigh(*other, folder), importing + weigh(folder, *other))
        });
        imported as i64 - importing as i64
    };
    order.sort_by_key(|folder| (balance(*folder), *folder));
    let mut fewest = count_arrows_back(&order, weigh);
    loop {
        let mut is_better = false;
        for from in 0..order.len() {
            for to in 0..order.len() {
                let mut moved_order = order.clone();
                let folder = moved_order.remove(from);
                moved_order.insert(to, folder);
                let arrow_count = count_arrows_back(&moved_order, weigh);
                if arrow_count < fewest {
                    (order, fewest, is_better) = (moved_order, arrow_count, true);
                }
            }
        }
        if !is_better {
            return order;
        }
    }
}

fn count_arrows_back(order: &[usize], weigh: &dyn Fn(usize, usize) -> usize) -> usize {
    let positions = order.iter().enumerate();
    positions
        .map(|(position, upper)| order[position + 1..].iter().map(|lower| weigh(*lower, *upper)).sum::<usize>())
        .sum()
}
