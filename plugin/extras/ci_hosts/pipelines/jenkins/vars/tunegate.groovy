/**
 * tunegate(): gates the commit that is checked out. plugin/extras/ci_hosts/README.md says what it takes.
 * Options and names of branches reach the command as words of a variable, never as text of a script.
 */
int call(Map options = [:]) {
    Map given = withDefaults(options)
    int exitCode = 0
    withEnv(["TUNEGATE_STEP_OUT=${given.out}", "TUNEGATE_STEP_WORDS=${words(given)}"]) {
        if (given.lock) {
            lock(resource: given.lock) { exitCode = gate() }
        } else {
            exitCode = gate()
        }
    }
    publish(given.out)
    conclude(exitCode, given.inconclusive)
    return exitCode
}

private Map withDefaults(Map options) {
    Map known = [options: [], out: '.tunegate', inconclusive: 'unstable', lock: '']
    for (String name in options.keySet()) {
        if (!known.containsKey(name)) {
            error "tunegate: there is no option '${name}'. Options are ${known.keySet().join(', ')}."
        }
    }
    Map given = known + options
    if (!(given.inconclusive in ['unstable', 'failure'])) {
        error "tunegate: inconclusive is 'unstable' or 'failure', not '${given.inconclusive}'."
    }
    return given
}

/** One word a line, as the script splits them. */
private String words(Map given) {
    for (Object word in given.options) {
        if (word.toString().contains('\n')) {
            error 'tunegate: an option has more than one line.'
        }
    }
    return given.options.join('\n')
}

/** Results of an earlier build in this workspace are gone first: they are never taken for this one's. */
private int gate() {
    return sh(label: 'tunegate', returnStatus: true, script: '''
        set +x -f
        if [ -e "$TUNEGATE_STEP_OUT/.owned-by-tunegate" ]; then
            rm -f -- "$TUNEGATE_STEP_OUT/junit.xml" "$TUNEGATE_STEP_OUT/report.html"
        fi
        IFS='
'
        exec tunegate run --ci jenkins --out="$TUNEGATE_STEP_OUT" $TUNEGATE_STEP_WORDS
    ''')
}

private void publish(String out) {
    junit allowEmptyResults: true, skipMarkingBuildUnstable: true, testResults: "${out}/junit.xml"
    archiveArtifacts allowEmptyArchive: true, artifacts: "${out}/**"
    if (!fileExists("${out}/report.html")) {
        return
    }
    try {
        publishHTML(target: [
            reportName: 'tunegate', reportDir: out, reportFiles: 'report.html',
            allowMissing: true, alwaysLinkToLastBuild: false, keepAll: true,
        ])
    } catch (NoSuchMethodError ignored) {
        echo 'tunegate: without the plugin htmlpublisher the report is only among the artifacts.'
    }
}

private void conclude(int exitCode, String inconclusive) {
    Map meanings = [
        1: 'a regression', 2: 'what was asked for cannot be used', 3: 'inconclusive',
        4: 'this machine, or what it depends on, cannot do it', 5: 'there is nothing to compare with',
        130: 'cancelled',
    ]
    if (exitCode == 0) {
        return
    }
    String text = "tunegate: ${meanings[exitCode] ?: 'no verdict'} (exit code ${exitCode})"
    if (exitCode == 3 && inconclusive == 'unstable') {
        unstable text
    } else {
        error text
    }
}
