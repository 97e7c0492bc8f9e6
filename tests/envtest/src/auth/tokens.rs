//! Who a bearer token stands for.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ring::hmac;
use serde_json::{Value, json};

use crate::request::User;

/// Why a token file is refused.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// The file cannot be read.
    #[error("cannot read the token file {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line is no CSV.
    #[error("{}: {source}", path.display())]
    Csv {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its line.
        source: csv::Error,
    },
    /// A line has too few columns.
    #[error("{}, line {line}: expected `token,user,uid` and optionally `\"group1,group2\"`, found {found} columns", path.display())]
    Columns {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Columns that are there.
        found: usize,
    },
    /// A line has an empty token.
    #[error("{}, line {line}: the token is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
    },
}

/// Every token that the server takes.
pub struct Tokens {
    fixed: HashMap<String, User>,
    key: hmac::Key,
}

/// A service account that a token is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountToken<'a> {
    /// Namespace of the account.
    pub namespace: &'a str,
    /// Name of the account.
    pub name: &'a str,
    /// Identity of the account.
    pub uid: &'a str,
    /// Who the token is meant for; none for the API server.
    pub audiences: &'a [String],
    /// Seconds since 1970 when it was made.
    pub issued_at: i64,
    /// Seconds since 1970 when it ends.
    pub expires_at: i64,
    /// The object that the token lives with, as the claim says it.
    pub bound: Option<Value>,
}

/// Who may issue service account tokens, and whom they are meant for.
pub const ISSUER: &str = "https://kubernetes.default.svc";

// === impl Tokens ===

impl Tokens {
    /// No fixed tokens; tokens of service accounts are signed with a key made of `secret`.
    pub fn new(secret: &[u8]) -> Self {
        Self { fixed: HashMap::new(), key: hmac::Key::new(hmac::HMAC_SHA256, secret) }
    }

    /// Takes a token for a user.
    pub fn add(&mut self, token: impl Into<String>, user: User) {
        self.fixed.insert(token.into(), user);
    }

    /// Takes the tokens of a file with lines `token,user,uid,"group1,group2"`.
    pub fn add_file(&mut self, path: &Path) -> Result<(), TokenFileError> {
        let file =
            std::fs::File::open(path).map_err(|source| TokenFileError::Read { path: path.to_owned(), source })?;
        self.add_csv(file, path)
    }

    fn add_csv(&mut self, text: impl Read, path: &Path) -> Result<(), TokenFileError> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(csv::Trim::All)
            .comment(Some(b'#'))
            .from_reader(text);
        for record in reader.records() {
            let record = record.map_err(|source| TokenFileError::Csv { path: path.to_owned(), source })?;
            let line = record.position().map_or(0, csv::Position::line);
            let (Some(token), Some(name), Some(uid)) = (record.get(0), record.get(1), record.get(2)) else {
                return Err(TokenFileError::Columns { path: path.to_owned(), line, found: record.len() });
            };
            if token.is_empty() {
                return Err(TokenFileError::Empty { path: path.to_owned(), line });
            }
            let groups = record.get(3).unwrap_or_default().split(',').map(str::trim).filter(|group| !group.is_empty());
            let groups = groups.map(ToOwned::to_owned).collect();
            self.add(token, User { name: name.to_owned(), uid: uid.to_owned(), groups, ..User::default() });
        }
        Ok(())
    }

    /// The user of a token; none when it is unknown or over.
    pub fn user(&self, token: &str, now: Timestamp) -> Option<User> {
        let mut user = match self.fixed.get(token) {
            Some(user) => user.clone(),
            None => self.account(token, now)?,
        };
        let authenticated = "system:authenticated".to_owned();
        if !user.groups.contains(&authenticated) {
            user.groups.push(authenticated);
        }
        Some(user)
    }

    /// A signed token of a service account.
    pub fn issue(&self, account: &AccountToken<'_>) -> String {
        let mut kubernetes = json!({
            "namespace": account.namespace, "serviceaccount": {"name": account.name, "uid": account.uid},
        });
        if let Some(Value::Object(bound)) = &account.bound {
            for (key, value) in bound {
                kubernetes[key] = value.clone();
            }
        }
        let issuer = vec![ISSUER.to_owned()];
        let audiences = if account.audiences.is_empty() { &issuer } else { account.audiences };
        let claims = json!({
            "iss": ISSUER, "aud": audiences, "iat": account.issued_at, "nbf": account.issued_at,
            "exp": account.expires_at, "kubernetes.io": kubernetes,
            "sub": format!("system:serviceaccount:{}:{}", account.namespace, account.name),
        });
        let header = json!({"alg": "HS256", "typ": "JWT"});
        let signed =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(header.to_string()), URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature = hmac::sign(&self.key, signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }

    fn account(&self, token: &str, now: Timestamp) -> Option<User> {
        let (signed, signature) = token.rsplit_once('.')?;
        hmac::verify(&self.key, signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).ok()?).ok()?;
        let (_, claims) = signed.split_once('.')?;
        let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
        let is_over = claims["exp"].as_i64().is_none_or(|end| end <= now.as_second());
        let is_ours = claims["aud"].as_array().is_some_and(|audiences| audiences.iter().any(|one| one == ISSUER));
        if is_over || !is_ours {
            return None;
        }
        let kubernetes = &claims["kubernetes.io"];
        let namespace = kubernetes["namespace"].as_str()?;
        let mut extra = Vec::new();
        for (claim, key) in
            [("pod", "authentication.kubernetes.io/pod-name"), ("node", "authentication.kubernetes.io/node-name")]
        {
            if let Some(name) = kubernetes[claim]["name"].as_str() {
                extra.push((key.to_owned(), vec![name.to_owned()]));
            }
        }
        Some(User {
            name: claims["sub"].as_str()?.to_owned(),
            uid: kubernetes["serviceaccount"]["uid"].as_str().unwrap_or_default().to_owned(),
            groups: vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")],
            extra,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_file_gives_users_and_groups() {
        let mut tokens = Tokens::new(b"k");
        let text = "t1,jane,u1,\"devs,ops\"\n# a comment\nt2,joe,u2\n";
        tokens.add_csv(text.as_bytes(), Path::new("f")).unwrap();
        let jane = tokens.user("t1", Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(jane.groups, ["devs", "ops", "system:authenticated"]);
        assert_eq!(tokens.user("t2", Timestamp::UNIX_EPOCH).unwrap().name, "joe");
        assert_eq!(tokens.user("t3", Timestamp::UNIX_EPOCH), None);
    }

    #[test]
    fn a_broken_token_file_names_its_line() {
        let mut tokens = Tokens::new(b"k");
        let error = tokens.add_csv("t1,jane,u1\nt2,joe\n".as_bytes(), Path::new("f")).unwrap_err();
        assert!(error.to_string().starts_with("f, line 2: expected"), "{error}");
    }

    #[test]
    fn an_account_token_holds_until_it_ends_and_for_its_audience_only() {
        let tokens = Tokens::new(b"k");
        let other = vec!["x".to_owned()];
        let account = AccountToken {
            namespace: "n",
            name: "a",
            uid: "u",
            audiences: &[],
            issued_at: 0,
            expires_at: 100,
            bound: None,
        };
        let token = tokens.issue(&account);
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(tokens.user(&token, at(99)).unwrap().name, "system:serviceaccount:n:a");
        assert_eq!(tokens.user(&token, at(100)), None);
        assert_eq!(tokens.user(&format!("{token}x"), at(1)), None);
        assert_eq!(tokens.user(&tokens.issue(&AccountToken { audiences: &other, ..account }), at(1)), None);
        assert_eq!(Tokens::new(b"other").user(&token, at(1)), None);
    }
}
