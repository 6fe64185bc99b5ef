//! The rest of the table: tokens of services with a prefix of their own, in the order of their kinds.

use super::mask_rule::{MaskRule, left, new_rule};

/// A token that ends where its characters end: a longer run is something else.
macro_rules! whole {
    ($pattern:expr) => {
        concat!(left!(), "(", $pattern, r")(?-u:\b)")
    };
}

/// A token of at least so many characters.
macro_rules! open {
    ($pattern:expr) => {
        concat!(left!(), "(", $pattern, ")")
    };
}

pub(super) const SERVICE_RULES: &[MaskRule] = &[
    new_rule("adobe", &["p8e-"], whole!(r"p8e-[A-Za-z0-9]{32}")),
    new_rule("airtable", &["=pat", "\"pat", "'pat", "airtable"], whole!(r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}")),
    new_rule("alibaba", &["ltai"], whole!(r"LTAI[A-Za-z0-9]{12,30}")),
    new_rule("artifactory", &["akc", "cmvmd"], whole!(r"AKC[A-Za-z0-9]{60,}|cmVmd[A-Za-z0-9]{59}")),
    new_rule("atlassian", &["atbb", "atctt3"], open!(r"ATBB[A-Za-z0-9_=.-]{28,}|ATCTT3[A-Za-z0-9_=-]{40,}")),
    new_rule("azure", &["q~"], r"(?:^|[^A-Za-z0-9_~.-])([A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34})"),
    new_rule("azure", &["sig="], r"[?&;](?:amp;)?sig=([A-Za-z0-9%/+_-]{40,}={0,2})"),
    new_rule(
        "azure",
        &["accountkey", "sharedaccesskey", "sharedsecret"],
        r"(?i-u:AccountKey|SharedAccessKey|SharedSecret(?:Value)?)[ \t]*=[ \t]*([A-Za-z0-9/+]{40,}={0,2})",
    ),
    new_rule("brave", &["bsa"], whole!(r"BSA[A-Za-z0-9_-]{27,30}")),
    new_rule("brevo", &["xkeysib-", "xsmtpsib-"], open!(r"x(?:key|smtp)sib-[0-9a-f]{64}-[A-Za-z0-9]{16}")),
    new_rule("buildkite", &["bkua_", "bkct_", "bkaj_"], open!(r"bk(?:ua|ct|aj)_[A-Za-z0-9]{36,}")),
    new_rule("cargo", &["cio"], whole!(r"cio[A-Za-z0-9]{32}")),
    new_rule("cerebras", &["csk-"], whole!(r"csk-[a-z0-9]{40,}")),
    new_rule("circleci", &["ccipat_", "cciprj_"], open!(r"CCI(?:PAT|PRJ)_[A-Za-z0-9]{10,}_[0-9a-f]{40}")),
    new_rule("clojars", &["clojars_"], open!(r"CLOJARS_[a-z0-9]{60}")),
    new_rule("cloudflare", &["v1.0-"], whole!(r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}")),
    new_rule("cloudinary", &["cloudinary://"], r"cloudinary://[0-9]+:([A-Za-z0-9_-]{20,})@"),
    new_rule("contentful", &["cfpat-"], open!(r"CFPAT-[A-Za-z0-9_-]{40,}")),
    new_rule("databricks", &["dapi"], whole!(r"dapi[0-9a-f]{32}(?:-[0-9])?")),
    new_rule("deno", &["ddp_", "ddw_"], whole!(r"dd[pw]_[A-Za-z0-9]{36}")),
    new_rule(
        "discord",
        &["discord", "login("],
        r"(?:^|[^A-Za-z0-9_.-])((?:M[TjDzA-Z]|N[DTjzA-Z]|O[DTjA-Z])[A-Za-z0-9_-]{21,26}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40})",
    ),
    new_rule("docker", &["\"auth\""], r#""auth"[ \t]*:[ \t]*"([A-Za-z0-9+/]{12,}={0,2})""#),
    new_rule(
        "doppler",
        &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."],
        open!(r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    ),
    new_rule("dropbox", &["=sl.", "\"sl.", "'sl.", " sl.", "dropbox"], whole!(r"sl\.(?:u\.)?[A-Za-z0-9_-]{120,}")),
    new_rule("duffel", &["duffel_"], open!(r"duffel_(?:test|live)_[A-Za-z0-9_=-]{43}")),
    new_rule("dynatrace", &["dt0"], open!(r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}")),
    new_rule("easypost", &["ezak", "eztk"], whole!(r"EZ[AT]K[A-Za-z0-9]{54}")),
    new_rule("elevenlabs", &["=sk_", "\"sk_", "'sk_", "elevenlabs", "xi-api-key"], whole!(r"sk_[0-9a-f]{48}")),
    new_rule("facebook", &["eaa"], whole!(r"EAA[A-Za-z0-9]{90,}")),
    new_rule("figma", &["figd_", "figo_", "figor_"], open!(r"fig(?:d|o|or)_[A-Za-z0-9_-]{38,}")),
    new_rule("firebase", &["aaaa"], whole!(r"AAAA[A-Za-z0-9_-]{7}:[A-Za-z0-9_-]{130,}")),
    new_rule("firecrawl", &["fc-"], whole!(r"fc-[0-9a-f]{32}")),
    new_rule("fireworks", &["fw_"], whole!(r"fw_[A-Za-z0-9]{22,}")),
    new_rule("flutterwave", &["flwseck"], open!(r"FLWSECK(?:_TEST)?-[0-9a-hA-H]{12,}-X")),
    new_rule("fly", &["fo1_", "fm1", "fm2_"], open!(r"fo1_[A-Za-z0-9_-]{40,}|fm(?:1[ar]|2)_[A-Za-z0-9+/=_-]{60,}")),
    new_rule("frameio", &["fio-u-"], open!(r"fio-u-[A-Za-z0-9_=-]{60,}")),
    new_rule("grafana", &["glc_", "glsa_"], open!(r"glc_[A-Za-z0-9+/=]{32,}|glsa_[A-Za-z0-9]{32}_[0-9A-Fa-f]{8}")),
    new_rule("grafana", &["eyjrijoi"], open!(r"eyJrIjoi[A-Za-z0-9+/=_-]{60,}")),
    new_rule("harness", &["pat.", "sat."], whole!(r"[ps]at\.[A-Za-z0-9_-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}")),
    new_rule("heroku", &["hrku-"], open!(r"HRKU-[A-Za-z0-9_-]{36,}")),
    new_rule(
        "hubspot",
        &["pat-"],
        open!(r"pat-(?:na|eu|ap)[0-9]-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
    ),
    new_rule("infracost", &["ico-"], whole!(r"ico-[A-Za-z0-9]{32}")),
    new_rule(
        "kubernetes",
        &["client-key-data"],
        r#"client-key-data\\*["']?[ \t]*:[ \t]*\\*["']?([A-Za-z0-9+/]{40,}={0,2})"#,
    ),
    new_rule("langchain", &["lsv2_"], open!(r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}")),
    new_rule("launchdarkly", &["sdk-", "api-"], whole!(r"(?:sdk|api)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")),
    new_rule("linear", &["lin_api_", "lin_oauth_", "lin_wh_"], open!(r"lin_(?:api|oauth|wh)_[A-Za-z0-9]{32,}")),
    new_rule("lob", &["=live_", "\"live_", "'live_", " live_"], whole!(r"live_[0-9a-f]{35}")),
    new_rule(
        "mailchimp",
        &["-us1", "-us2", "-us3", "-us4", "-us5", "-us6", "-us7", "-us8", "-us9"],
        whole!(r"[0-9a-f]{32}-us[0-9]{1,2}"),
    ),
    new_rule("mailgun", &["key-", "pubkey-"], whole!(r"(?:pub)?key-[0-9a-f]{32}")),
    new_rule(
        "mailgun",
        &["mailgun"],
        r"(?i-u:mailgun)[^\n]{0,80}?(?-u:\b)([0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8})(?-u:\b)",
    ),
    new_rule("mapbox", &["sk.eyj", "tk.eyj"], whole!(r"[st]k\.eyJ[A-Za-z0-9_-]{40,}\.[A-Za-z0-9_-]{20,}")),
    new_rule("maxmind", &["_mmk"], r"([A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk)(?-u:\b)"),
    new_rule("neon", &["napi_"], whole!(r"napi_[a-z0-9]{60,}")),
    new_rule("netlify", &["nfp_", "nfo_", "nfc_"], whole!(r"nf[poc]_[A-Za-z0-9]{36,40}")),
    new_rule("newrelic", &["nrak-", "nrjs-", "nrii-", "nrra-"], open!(r"NR(?:AK|JS|II|RA)-[A-Za-z0-9_-]{19,42}")),
    new_rule("notion", &["ntn_", "secret_"], whole!(r"ntn_[A-Za-z0-9]{43,50}|secret_[A-Za-z0-9]{43}")),
    new_rule("nuget", &["oy2"], whole!(r"oy2[a-z0-9]{43}")),
    new_rule("nvidia", &["nvapi-"], open!(r"nvapi-[A-Za-z0-9_-]{60,}")),
    new_rule("octopus", &["=api-", "\"api-", "'api-", " api-"], whole!(r"API-[A-Z0-9]{26,32}")),
    new_rule(
        "onepassword",
        &["ops_eyj", "a3-"],
        open!(
            r"ops_eyJ[A-Za-z0-9+/=_-]{100,}|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"
        ),
    ),
    new_rule("openshift", &["sha256~"], open!(r"sha256~[A-Za-z0-9_-]{43}")),
    new_rule("pinecone", &["pcsk_"], open!(r"pcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{40,}")),
    new_rule(
        "plaid",
        &["access-sandbox-", "access-development-", "access-production-"],
        open!(r"access-(?:sandbox|development|production)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ),
    new_rule("planetscale", &["pscale_"], open!(r"pscale_(?:tkn|oauth|pw)_[A-Za-z0-9_.=-]{32,}")),
    new_rule("posthog", &["phx_", "phs_"], whole!(r"ph[xs]_[A-Za-z0-9]{40,}")),
    new_rule("postman", &["pmak-"], open!(r"PMAK-[0-9a-fA-F]{24}-[0-9a-fA-F]{34}")),
    new_rule("prefect", &["pnu_", "pnb_"], whole!(r"pn[ub]_[A-Za-z0-9]{36}")),
    new_rule("pulumi", &["pul-"], whole!(r"pul-[0-9a-f]{40}")),
    new_rule("razorpay", &["rzp_"], whole!(r"rzp_(?:live|test)_[A-Za-z0-9]{14,}")),
    new_rule("readme", &["rdme_"], open!(r"rdme_[a-z0-9]{70}")),
    new_rule("render", &["rnd_"], whole!(r"rnd_[A-Za-z0-9]{28,32}")),
    new_rule("resend", &["=re_", "\"re_", "'re_", " re_", "resend"], whole!(r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,28}")),
    new_rule("rubygems", &["rubygems_"], open!(r"rubygems_[0-9a-f]{48}")),
    new_rule("scalingo", &["tk-us-"], open!(r"tk-us-[A-Za-z0-9_-]{48}")),
    new_rule("sentry", &["sntrys_", "sntryu_"], open!(r"sntrys_[A-Za-z0-9+/=_-]{40,}|sntryu_[0-9a-f]{64}")),
    new_rule("shippo", &["shippo_"], open!(r"shippo_(?:live|test)_[0-9a-fA-F]{40}")),
    new_rule("sonar", &["sqp_", "sqa_", "squ_"], whole!(r"sq[pau]_[0-9a-f]{40}")),
    new_rule("sourcegraph", &["sgp_"], whole!(r"sgp_(?:(?:[0-9a-f]{16}|local)_)?[0-9a-f]{40}")),
    new_rule("square", &["sq0", "eaaa"], whole!(r"sq0[a-z]{3}-[A-Za-z0-9_-]{22,43}|EAAA[A-Za-z0-9_-]{60}")),
    new_rule("supabase", &["sbp_", "sb_secret_"], open!(r"sbp_(?:v0_)?[0-9a-f]{40}|sb_secret_[A-Za-z0-9_-]{20,}")),
    new_rule("tailscale", &["tskey-"], open!(r"tskey-[a-z]{2,12}-[A-Za-z0-9]{6,}(?:-[A-Za-z0-9]{16,})?")),
    new_rule("tavily", &["tvly-"], open!(r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{32,}")),
    new_rule("teams", &["webhook.office.com"], r"webhook\.office\.com/webhookb2/([A-Za-z0-9@/_-]{60,})"),
    new_rule("terraform", &[".atlasv1."], r"(?-u:\b)([A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,})"),
    new_rule("together", &["tgp_v1_"], open!(r"tgp_v1_[A-Za-z0-9_-]{43}")),
    new_rule(
        "twilio",
        &[
            "sk0", "sk1", "sk2", "sk3", "sk4", "sk5", "sk6", "sk7", "sk8", "sk9", "ska", "skb", "skc", "skd", "ske",
            "skf",
        ],
        whole!(r"SK[0-9a-f]{32}"),
    ),
    new_rule("typeform", &["tfp_"], open!(r"tfp_[A-Za-z0-9_.=-]{59,}")),
    new_rule(
        "yandex",
        &["aqvn", "y0_", "t1.9"],
        open!(r"AQVN[A-Za-z0-9_-]{35,}|y0_[A-Za-z0-9_-]{50,}|t1\.[A-Z0-9a-z_-]{60,}={0,2}\.[A-Za-z0-9_-]{80,}"),
    ),
];
