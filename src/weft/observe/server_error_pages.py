"""The pages of errors of the command line: servers that it is to speak to, backups, and new projects."""

from __future__ import annotations

SERVER_PAGES: dict[str, tuple[str, str, str]] = {
    "store.no_server": (
        "A server did not answer, although the request was repeated a few times.",
        "It is not running, its address is wrong, or the network is down. It is safe to repeat a command.",
        "Check with curl https://…/healthz. Start it: weft serve app.py. What a server needs: weft doctor, there.",
    ),
    "usage.no_weft_server": (
        "Something answered at this URL, and it is not the API of Weft.",
        "The URL is that of another program or of a proxy, or it lacks the path at which the API is mounted.",
        "Open URL/healthz. If the app is mounted below a path, add the path: https://shop.example/weft",
    ),
    "usage.server_version": (
        "The server runs another version of Weft, whose rows and logs this command line cannot read.",
        "Commands read what the store has, in the format of the version that wrote it. Nothing was changed.",
        "Install the version of the server here (weft doctor --url https://… shows it), or update the server.",
    ),
    "usage.certificate": (
        "A connection to the server could not be made safe: its certificate is not valid, or it does not speak TLS.",
        "The certificate has expired, or is of another name or an unknown authority. The API key was not sent.",
        "Use the name in the certificate. For an authority of your own: SSL_CERT_FILE=/path/ca.pem.",
    ),
    "usage.not_through_server": (
        "This command works on a store, and the URL is that of a server.",
        "Hosting runs, migrating a schema and copying the file of a store are done where the store is.",
        "Give the URL of the store, on a machine that reaches it: --url postgresql://user@host/database",
    ),
    "usage.postgres_tools": (
        "weft backup and weft restore were asked to copy a store in Postgres.",
        "Postgres has tools for this that are older, faster and better known than any of ours.",
        "The hint has the commands. docs/backup.md has more, and point-in-time recovery.",
    ),
    "backup.file_exists": (
        "weft backup, weft restore or weft export was asked to write a file that exists.",
        "A copy never replaces another: the older one may be the one that is needed. Nothing was changed.",
        "Name a new file for each copy, with its date; restore to a new file, or move the old store away first.",
    ),
    "backup.store_in_use": (
        "weft restore was asked to write a store that a process works on.",
        "What the process writes would be lost, and what it does would be done twice.",
        "Stop the process that the message names, then restore.",
    ),
    "usage.not_empty": (
        "weft init was asked to write into a directory that has files.",
        "It never changes files that exist. Nothing was written.",
        "Name a new directory: weft init shop",
    ),
}
