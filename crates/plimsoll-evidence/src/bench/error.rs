//! What is wrong with a results file.

/// Why a results file cannot be used; a file's mistakes are reported all at once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResultsError {
    /// Not JSON, though it begins like it.
    #[error("{file}: this is not JSON: {message} (line {line}, column {column})")]
    Syntax {
        /// The file as the user named it.
        file: String,
        /// What the JSON reader says.
        message: String,
        /// Where, counted from one.
        line: usize,
        /// Where, counted from one.
        column: usize,
    },
    /// Nothing that a known tool writes.
    #[error("{file}: no results of a benchmark: it is {looks}")]
    Unknown {
        /// The file as the user named it.
        file: String,
        /// What the file looks like.
        looks: String,
        /// What to do with it instead.
        help: String,
    },
    /// A field holds what cannot be, or is not there.
    #[error("{file}, row {row}: `{field}` {problem}")]
    Field {
        /// The file as the user named it.
        file: String,
        /// The line, benchmark or stage within it, counted from one.
        row: usize,
        /// The field, parts of its path apart by dots.
        field: String,
        /// What is wrong with it, with its value.
        problem: String,
    },
    /// More of the same.
    #[error("{file}: and {count} more problems")]
    More {
        /// The file as the user named it.
        file: String,
        /// How many were left out.
        count: usize,
    },
}

impl ResultsError {
    /// What the user could do about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Syntax { message, .. } if message.starts_with("EOF") => {
                Some("the file ends in the middle of a value: copy it again".to_owned())
            }
            Self::Unknown { help, .. } => Some(help.clone()),
            Self::Field { problem, .. } if problem.contains(" in a field of ") => Some(
                "multiply the field by its unit, or export it again in the unit of its name"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    /// At most this many are worth reading; the rest is counted.
    pub(super) fn few(file: &str, mut errors: Vec<Self>) -> Vec<Self> {
        const MOST: usize = 50;
        if errors.len() > MOST {
            let count = errors.len() - MOST;
            errors.truncate(MOST);
            errors.push(Self::More { file: file.to_owned(), count });
        }
        errors
    }
}
