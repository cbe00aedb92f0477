//! The run of job files as text: each job as a single workload is shown.

use iostrata_run::{FioDocument, FioJobDocument};

use super::io;
use super::markdown::{escaped, workload};
use super::paper::{Paper, clean};

fn title(job: &FioJobDocument) -> String {
    match job.clones {
        1 => job.name.clone(),
        clones => format!("{}, {clones} clones", job.name),
    }
}

/// The lines for a terminal.
pub(crate) fn lines(fio: &FioDocument, paper: &Paper) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, wave) in fio.waves.iter().enumerate() {
        for job in &wave.jobs {
            let wave =
                if fio.waves.len() > 1 { format!(" (wave {})", number + 1) } else { String::new() };
            lines.push(format!("{}{}", paper.bold(&clean(&title(job))), paper.dim(&wave)));
            lines.extend(io::lines(&job.figures, paper));
            lines.push(String::new());
        }
    }
    for warning in &fio.warnings {
        lines.extend(paper.wrapped(&clean(&warning.to_string()), 0));
    }
    lines
}

/// The Markdown document.
pub(crate) fn document(fio: &FioDocument) -> String {
    let mut text = "# iostrata fio\n".to_owned();
    for (number, wave) in fio.waves.iter().enumerate() {
        for job in &wave.jobs {
            let wave = format!("wave {}", number + 1);
            text.push_str(&format!("\n## {} ({wave})\n", escaped(&title(job))));
            text.push_str(&workload(&job.figures));
        }
    }
    for warning in &fio.warnings {
        text.push_str(&format!("\n- {}\n", escaped(&warning.to_string())));
    }
    text
}
