//! The flags of how clients of the secure port are known by their certificates.

use std::path::PathBuf;

use super::port::FrontProxy;
use crate::flags::wrong;
use clap::Args;

/// Flags of client certificates.
#[derive(Clone, Debug, Args)]
pub(super) struct ClientFlags {
    /// Authorities of client certificates for the secure port: the common name of such a certificate is a user's name, its
    /// organizations are the groups.
    #[arg(long, value_name = "FILE")]
    client_ca_file: Option<PathBuf>,
    /// Authorities of the certificate of a proxy in front of the secure port, whose headers name the user.
    #[arg(long, value_name = "FILE")]
    requestheader_client_ca_file: Option<PathBuf>,
    /// Common names of which the proxy's certificate has one; without it every name will do.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    requestheader_allowed_names: Vec<String>,
    /// Headers with the user's name; the first that is there counts.
    #[arg(long, default_value = "x-remote-user", value_name = "HEADER,…", value_delimiter = ',')]
    requestheader_username_headers: Vec<String>,
    /// Headers with the user's uid; the first that is there counts.
    #[arg(long, value_name = "HEADER,…", value_delimiter = ',')]
    requestheader_uid_headers: Vec<String>,
    /// Headers with the user's groups.
    #[arg(long, default_value = "x-remote-group", value_name = "HEADER,…", value_delimiter = ',')]
    requestheader_group_headers: Vec<String>,
    /// What the headers with further facts about the user begin with.
    #[arg(long, default_value = "x-remote-extra-", value_name = "PREFIX,…", value_delimiter = ',')]
    requestheader_extra_headers_prefix: Vec<String>,
}

impl ClientFlags {
    /// Checks that each name says something.
    pub(super) fn check(&self) -> Result<(), clap::Error> {
        let lists = [
            ("requestheader-allowed-names", &self.requestheader_allowed_names),
            ("requestheader-username-headers", &self.requestheader_username_headers),
            ("requestheader-uid-headers", &self.requestheader_uid_headers),
            ("requestheader-group-headers", &self.requestheader_group_headers),
            ("requestheader-extra-headers-prefix", &self.requestheader_extra_headers_prefix),
        ];
        // An empty flag is an empty list.
        let has_blank = |list: &[String]| *list != [""] && list.iter().any(|name| name.trim().is_empty());
        match lists.into_iter().find(|(_, list)| has_blank(list)) {
            Some((flag, _)) => Err(wrong(flag, "empty value in the list")),
            None => Ok(()),
        }
    }

    /// The authorities of users.
    pub(super) fn authority(&self) -> Option<PathBuf> {
        self.client_ca_file.clone()
    }

    /// Who speaks for others; none without authorities of such.
    pub(super) fn front_proxy(&self) -> Option<FrontProxy> {
        let list = |names: &[String]| {
            names.iter().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
        };
        Some(FrontProxy {
            authority: self.requestheader_client_ca_file.clone()?,
            names: list(&self.requestheader_allowed_names),
            username_headers: list(&self.requestheader_username_headers),
            uid_headers: list(&self.requestheader_uid_headers),
            group_headers: list(&self.requestheader_group_headers),
            extra_prefixes: list(&self.requestheader_extra_headers_prefix),
        })
    }
}
